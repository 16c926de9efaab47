"""Edits of shell text: the one change asked for, every other byte kept."""

from __future__ import annotations

import pytest

from trimtab.engine.command import Edit, LaunchCommand, apply_edits, read_commands
from trimtab.engine.editing import remove_uses

SCRIPT = """#!/bin/bash
MODEL="Qwen/X"   # the model
EXTRA="--swap-space 4 --enforce-eager"
ARGS=(
  --port 8000  # port
  --dtype half
)
vllm serve $MODEL \\
  --max-model-len '4096' --tensor_parallel_size=2 \\
  --speculative-config='{"method": "mtp"}' \\
  --gpu-memory-utilization "0.9" $EXTRA "${ARGS[@]}" > log 2>&1 &
"""


def only(text: str) -> LaunchCommand:
    reading = read_commands(text)
    assert not reading.problems
    (command,) = reading.commands
    return command


def changed(text: str, edits: list[Edit]) -> tuple[str, str]:
    """What the edits take out and put in, with the text between the first and the last change."""
    after = apply_edits(text, edits)
    start = 0
    while start < min(len(text), len(after)) and text[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(text), len(after)) - start and text[-1 - end] == after[-1 - end]:
        end += 1
    return text[start : len(text) - end], after[start : len(after) - end]


@pytest.mark.parametrize(
    ("name", "value", "line_before", "line_after"),
    [
        ("max-model-len", "8192", "--max-model-len '4096'", "--max-model-len '8192'"),
        ("tensor-parallel-size", "4", "--tensor_parallel_size=2", "--tensor_parallel_size=4"),
        ("speculative-config", '{"a": 1}', """'{"method": "mtp"}'""", """'{"a": 1}'"""),
        ("speculative-config", "it's", """'{"method": "mtp"}'""", """'it'"'"'s'"""),
        ("gpu-memory-utilization", "0.95", '"0.9"', '"0.95"'),
        ("gpu-memory-utilization", 'a"b', '"0.9"', '"a\\"b"'),
        ("swap-space", "2", "--swap-space 4", "--swap-space 2"),
        ("dtype", "auto", "--dtype half", "--dtype auto"),
        ("kv-cache-dtype", "fp8", "--dtype half", "--dtype half\n  --kv-cache-dtype fp8"),
        ("enforce-eager", "True", "--enforce-eager", "--enforce-eager True"),
    ],
)
def test_set(name: str, value: str, line_before: str, line_after: str) -> None:
    after = apply_edits(SCRIPT, only(SCRIPT).edit_set(name, value))
    assert after == SCRIPT.replace(line_before, line_after, 1)
    assert only(after).get(name) == value


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("max-model-len", "--max-model-len '4096' ", ""),
        ("tensor-parallel-size", " --tensor_parallel_size=2", ""),
        ("speculative-config", """ \\\n  --speculative-config='{"method": "mtp"}'""", ""),
        ("gpu-memory-utilization", '--gpu-memory-utilization "0.9" ', ""),
        ("swap-space", "--swap-space 4 ", ""),
        ("enforce-eager", " --enforce-eager", ""),
        ("port", "--port 8000  ", ""),
        ("dtype", "\n  --dtype half", ""),
    ],
)
def test_remove(name: str, before: str, after: str) -> None:
    edited = apply_edits(SCRIPT, only(SCRIPT).edit_remove(name))
    assert edited == SCRIPT.replace(before, after, 1)
    assert only(edited).last(name) is None


def test_rename_keeps_value_and_negation() -> None:
    text = "vllm serve m --no-enable_x --cfg.a.b=1 -tp 2"
    command = only(text)
    assert changed(text, command.edit_rename("enable-x", "enable-y")) == ("_x", "-y")
    assert changed(text, command.edit_rename("cfg", "conf")) == ("fg", "onf")
    assert apply_edits(text, command.edit_rename("tensor-parallel-size", "tensor-parallel")).endswith(
        " --tensor-parallel 2"
    )


def test_a_variable_cannot_hold_quotes() -> None:
    assert only(SCRIPT).edit_set("swap-space", "a b") == []


def test_inside_a_quoted_script() -> None:
    text = "bash -lc \"cd /x && vllm serve m --dtype 'half' --port 1\"\n"
    command = only(text)
    assert apply_edits(text, command.edit_set("port", '{"a":1}')) == text.replace("port 1", "port '{\\\"a\\\":1}'")
    assert apply_edits(text, command.edit_set("x", None)) == text.replace("port 1", "port 1 --x")
    assert apply_edits(text, command.edit_remove("dtype")) == text.replace(" --dtype 'half'", "")


def test_a_value_shared_by_a_variable_is_replaced_at_its_use() -> None:
    text = "N='a b'\nvllm serve m --served-model-name $N --port 1 # $N\n"
    command = only(text)
    assert apply_edits(text, command.edit_set("served-model-name", "c")) == text.replace("name $N", "name c")
    assert apply_edits(text, command.edit_remove("served-model-name")) == text.replace(" --served-model-name $N", "")


def test_one_use_of_several_is_taken_out() -> None:
    text = "vllm serve m --port 1 --seed 0 --port 2"
    command = only(text)
    assert apply_edits(text, remove_uses(command, command.all("port")[:1])) == "vllm serve m --seed 0 --port 2"


COMPOSE = """services:
  v:
    image: vllm/vllm-openai:v0.9.0
    command:
      - --model   # which
      - "org/m"
      - '--swap-space=4'
      - --dtype
      - half  # why
    ports: ["8000:8000"]
"""


@pytest.mark.parametrize(
    ("edit", "name", "value", "before", "after"),
    [
        ("set", "dtype", "auto", "half", "auto"),
        ("set", "dtype", "4", "- half", '- "4"'),
        ("set", "swap-space", "it's", "4'", "it''s'"),
        ("set", "seed", "1", "half  # why\n", 'half  # why\n      - --seed\n      - "1"\n'),
        ("remove", "swap-space", None, "      - '--swap-space=4'\n", ""),
        ("remove", "dtype", None, "      - --dtype\n      - half  # why\n", ""),
        ("rename", "swap-space", "s", "swap-space", "s"),
    ],
)
def test_a_yaml_list(edit: str, name: str, value: str | None, before: str, after: str) -> None:
    command = only(COMPOSE)
    if edit == "rename":
        edits = command.edit_rename(name, value or "")
    else:
        edits = command.edit_set(name, value) if edit == "set" else command.edit_remove(name)
    assert apply_edits(COMPOSE, edits) == COMPOSE.replace(before, after, 1)


def test_a_yaml_flow_list_over_lines() -> None:
    text = 'spec:\n  containers:\n  - image: vllm/vllm-openai\n    args: ["--model", "m",\n           "--seed", "1"]\n'
    command = only(text)
    assert apply_edits(text, command.edit_remove("seed")) == text.replace(',\n           "--seed", "1"', "")
    assert apply_edits(text, command.edit_remove("model")) == text.replace('"--model", "m",\n           ', "")
    assert apply_edits(text, command.edit_set("x", None)) == text.replace('"1"', '"1", "--x"')


def test_a_script_in_a_yaml_block() -> None:
    text = (
        "containers:\n- image: i\n  command: [sh, -c]\n  args:\n  - |\n    set -e\n    vllm serve m \\\n"
        "      --seed 1 \\\n      --dtype half\n"
    )
    command = only(text)
    assert apply_edits(text, command.edit_remove("seed")) == text.replace("      --seed 1 \\\n", "")
    assert apply_edits(text, command.edit_set("port", "1")) == text.replace("half", "half \\\n      --port 1")


def test_a_config_file() -> None:
    text = "model: m\nmax_model_len: 4096  # c\nenforce-eager: true\n"
    command = only(text)
    assert apply_edits(text, command.edit_set("max-model-len", "8192")) == text.replace("4096", "8192")
    assert apply_edits(text, command.edit_set("seed", "1")) == text + "seed: 1\n"
    assert apply_edits(text, command.edit_remove("enforce-eager")) == text.replace("enforce-eager: true\n", "")
    assert apply_edits(text, command.edit_rename("max-model-len", "len")) == text.replace("max_model_len", "len")


def test_a_dockerfile() -> None:
    text = 'FROM vllm/vllm-openai\nCMD ["--model", "m", \\\n     "--seed", "1"]\n'
    command = only(text)
    assert apply_edits(text, command.edit_set("seed", 'a"b')) == text.replace('"1"', '"a\\"b"')
    assert apply_edits(text, command.edit_remove("seed")) == text.replace(', \\\n     "--seed", "1"', "")


def test_a_unit() -> None:
    text = "[Service]\nExecStart=/usr/bin/vllm serve m \\\n  --seed 1 \\\n  --dtype half\nRestart=always\n"
    command = only(text)
    assert apply_edits(text, command.edit_remove("seed")) == text.replace("  --seed 1 \\\n", "")
    assert apply_edits(text, command.edit_set("port", "1")) == text.replace("half", "half \\\n  --port 1")


@pytest.mark.parametrize("mark", ["`", "^", "\\"])
def test_continuations_of_other_shells(mark: str) -> None:
    text = f"vllm serve m {mark}\r\n  --seed 1 {mark}\r\n  --dtype half\r\n"
    command = only(text)
    assert [flag.name for flag in command.flags] == ["seed", "dtype"]
    assert apply_edits(text, command.edit_remove("seed")) == text.replace(f"  --seed 1 {mark}\r\n", "")


@pytest.mark.parametrize(
    "command",
    [
        LaunchCommand.from_argv(
            ["vllm", "serve", "org/m", "--port", "80", "--hf-overrides", '{"a": "it\'s"}'], {"A": "b c"}
        ),
        only("A='b c' vllm serve org/m --port 80 \\\n  --hf-overrides '{\"a\": \"it'\\''s\"}' # a comment\n"),
    ],
    ids=["argv", "shell"],
)
def test_a_launch_after_its_edits(command: LaunchCommand) -> None:
    after = command.after([*command.edit_set("max-num-seqs", "8"), *command.edit_remove("port")])
    assert after is not None
    assert after.argv() == ["vllm", "serve", "org/m", "--hf-overrides", '{"a": "it\'s"}', "--max-num-seqs", "8"]
    assert {name: use.value for name, use in after.env.items()} == {"A": "b c"}
