"""LaunchCommand as a value: from words to words."""

from __future__ import annotations

from trimtab.engine.command import Form, LaunchCommand, read_commands
from trimtab.engine.flags import FlagTable, minors
from trimtab.engine.reading.arguments import SHORT


def test_from_argv_and_back() -> None:
    argv = ["vllm", "serve", "Qwen/Qwen3-8B", "-tp", "2", "--max_model_len=4096", "--no-enable-prefix-caching",
            "--speculative-config", '{"method": "it\'s"}', "--compilation-config.mode", "3"]  # fmt: skip
    command = LaunchCommand.from_argv(argv, {"VLLM_USE_V1": "1"})
    assert command.form is Form.ARGV
    assert command.model is not None
    assert command.model.text == "Qwen/Qwen3-8B"
    assert command.get("tensor-parallel-size") == "2"
    assert command.get("max-model-len") == "4096"
    assert command.get("compilation-config") is None
    assert command.get("compilation-config.mode") == "3"
    assert command.last("enable-prefix-caching") is not None
    assert not command.has("enable-prefix-caching")
    assert command.env["VLLM_USE_V1"].value == "1"
    assert command.argv() == [
        "vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2", "--max-model-len", "4096",
        "--no-enable-prefix-caching", "--speculative-config", '{"method": "it\'s"}', "--compilation-config.mode", "3",
    ]  # fmt: skip


def test_spans_of_from_argv_are_those_of_the_quoted_line() -> None:
    command = LaunchCommand.from_argv(["serve", "m", "--hf-overrides={'ü': 1}", "--dtype", "half"])
    flag = command.flags[0]
    assert command.source.data[flag.span.start : flag.span.end].decode() == "'--hf-overrides={'\"'\"'ü'\"'\"': 1}'"
    assert flag.value_span is not None
    dtype = command.flags[1].value_span
    assert dtype is not None
    assert command.source.data[dtype.start : dtype.end] == b"half"


def test_with_and_without_flag() -> None:
    command = LaunchCommand.from_argv(["vllm", "serve", "m", "--dtype", "half", "--dtype", "auto"])
    assert command.with_flag("dtype", "bfloat16").argv() == ["vllm", "serve", "m", "--dtype", "bfloat16"]
    assert command.without_flag("dtype").argv() == ["vllm", "serve", "m"]
    assert command.with_flag("enforce-eager").has("enforce-eager")


def test_one_line_of_each_kind() -> None:
    reading = read_commands(
        "export HF_TOKEN=x\nCUDA_VISIBLE_DEVICES=0,1 nohup vllm serve m -tp 2 \\\n  --dtype 'half' &\n"
        "sudo docker run --gpus '\"device=0,1\"' --ipc=host -e A=b vllm/vllm-openai:v0.6.3 --model n\n"
        "python3 -m vllm.entrypoints.openai.api_server --model o\nvllm bench serve --model p\n"
    )
    assert not reading.problems
    serve, docker, server = reading.commands
    assert serve.get("dtype") == "half"
    assert {n: u.value for n, u in serve.env.items()} == {"HF_TOKEN": "x", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert docker.container is not None
    assert (docker.container.version, docker.container.device_ids) == ("0.6.3", ("0", "1"))
    assert server.model is not None
    assert server.model.text == "o"


def test_switches_take_no_word_and_lists_take_several() -> None:
    argv = [
        "vllm",
        "serve",
        "--trust-remote-code",
        "org/m",
        "--served-model-name",
        "a",
        "b",
        "--enable-chunked-prefill",
        "False",
    ]
    command = LaunchCommand.from_argv(argv)
    assert command.model is not None
    assert command.model.text == "org/m"
    assert command.last("served-model-name") is not None
    assert [flag.values for flag in command.flags] == [(), ("a", "b"), ("False",)]
    assert command.strays == ()


def test_optimization_level_in_every_spelling() -> None:
    for words, dotted, value in (
        (["-O3"], "optimization-level", "3"),
        (["-O", "3"], "optimization-level", "3"),
        (["-O=3"], "optimization-level", "3"),
        (["-O.level=3"], "compilation-config.level", "3"),
        (["-cc.mode", "3"], "compilation-config.mode", "3"),
    ):
        command = LaunchCommand.from_argv(["serve", "m", *words])
        assert [(flag.dotted, flag.value) for flag in command.flags] == [(dotted, value)]


def test_short_names_are_those_of_the_tables() -> None:
    found = {
        spelling: flag.name.lstrip("-")
        for version in minors()
        for flag in FlagTable.for_version(version).flags
        for spelling in flag.spellings
        if spelling.startswith("-") and not spelling.startswith("--")
    }
    assert {**found, "-O": "optimization-level"} == SHORT
