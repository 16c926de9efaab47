"""What SUBJECT and the words after -- name, and what is said where they name nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.facts.probe.test_hub import FILES, ID, Watcher
from tests.fakes.hub_server import Repo, serve_hub
from trimtab.cli.subject import (
    CommandSubject,
    ModelSubject,
    PlanSubject,
    model_directory,
    one_launch,
    resolve_subject,
)
from trimtab.errors import ModelError, TrimtabError, UsageError
from trimtab.facts.probe.hub_settings import Hub


def failure(subject: str | None, rest: list[str] | None = None, kind: type[TrimtabError] = UsageError) -> str:
    with pytest.raises(kind) as caught:
        resolve_subject(subject, rest)
    return f"{caught.value.message} -> {caught.value.hint}"


def commands(subject: str | None, rest: list[str] | None = None) -> CommandSubject:
    found = resolve_subject(subject, rest)
    assert isinstance(found, CommandSubject)
    return found


@pytest.mark.parametrize(
    ("text", "model_id"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("gpt2", "gpt2"),
        ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("https://hf-mirror.com/Qwen/Qwen3-8B/tree/main?x=1", "Qwen/Qwen3-8B"),
    ],
)
def test_model_id(text: str, model_id: str) -> None:
    assert resolve_subject(text, None) == ModelSubject(None, model_id)


def test_model_directory_and_its_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert resolve_subject(str(tmp_path), None) == ModelSubject(tmp_path, None)
    assert resolve_subject(str(tmp_path / "config.json"), None) == ModelSubject(tmp_path, None)
    assert resolve_subject(str(tmp_path), None).pinned == ()


def test_a_directory_wins_over_an_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Qwen/Qwen3-8B").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert resolve_subject("Qwen/Qwen3-8B", None) == ModelSubject(Path("Qwen/Qwen3-8B"), None)


def test_flags_after_dashes_are_pinned() -> None:
    found = resolve_subject("a/b", ["--max-model-len", "8192", "--enforce-eager"])
    assert [(f.name, f.value) for f in found.pinned] == [("max-model-len", "8192"), ("enforce-eager", None)]


@pytest.mark.parametrize("rest", [["vllm", "serve", "x"], ["x/y", "--seed", "1"]])
def test_words_that_are_no_flags(rest: list[str]) -> None:
    assert f"not {rest[0]!r}" in failure("a/b", rest)


@pytest.mark.parametrize("rest", [None, []])
def test_nothing_named(rest: list[str] | None) -> None:
    assert "nothing to work on" in failure(None, rest)


@pytest.mark.parametrize(
    "rest",
    [
        ["vllm", "serve", "a/b", "--max-model-len", "8k"],
        ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "a/b", "--max-model-len", "8k"],
        ["CUDA_VISIBLE_DEVICES=0", "vllm", "serve", "a/b", "--max-model-len=8k"],
        ["--model", "a/b", "--max-model-len", "8k"],
    ],
)
def test_command_after_dashes(rest: list[str]) -> None:
    command = one_launch(commands(None, rest))
    assert str(command.model) == "a/b"
    assert command.get("max-model-len") == "8k"


def test_file_with_a_command(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("#!/bin/sh\nexport X=1\nvllm serve a/b \\\n  --max-model-len 8192\n")
    found = commands(str(file), ["--seed", "1"])
    assert str(one_launch(found).model) == "a/b"
    assert [f.name for f in found.pinned] == ["seed"]
    again, first = commands(f"{file}:4").commands[0], found.commands[0]
    assert (again.span, again.argv()) == (first.span, first.argv())


def test_file_with_several_commands(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("vllm serve a/b\n\nvllm serve c/d --port 8001\n")
    found = commands(str(file))
    with pytest.raises(UsageError) as caught:
        one_launch(found)
    assert "1: vllm serve a/b\n  3: vllm serve c/d --port 8001" in str(caught.value)
    assert str(caught.value.hint) == f"Name one: {file}:1"
    assert str(one_launch(commands(f"{file}:3")).model) == "c/d"
    assert "They stand at line 1, 3." in failure(f"{file}:2")


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("run.sh", "docker run --gpus all vllm/vllm-openai:v0.6.3 --model a/b\n", "a docker run command"),
    ],
)
def test_containers_are_not_started(tmp_path: Path, name: str, text: str, what: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as caught:
        one_launch(commands(str(tmp_path / name)))
    assert what in str(caught.value)
    assert "trimtab up -- vllm serve a/b" in str(caught.value.hint)


@pytest.mark.parametrize("rest", [["vllm", "bench", "serve", "--model", "a/b"], ["vllm", "chat"], ["ls"]])
def test_words_that_launch_no_server(rest: list[str]) -> None:
    assert "what follows -- holds no launch command of vLLM" in failure(None, rest)


def test_plan_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    plan = {"schema": "trimtab.plan/1", "command": ["vllm", "serve", "a/b"], "env": {}}
    file.write_text(json.dumps(plan))
    assert resolve_subject(str(file), None) == PlanSubject(file, plan)
    file.write_text(json.dumps({"schema": "trimtab.plan/2"}))
    assert "is of schema trimtab.plan/2" in failure(str(file))
    file.write_text(json.dumps({"schema": "trimtab.verify/1"}))
    assert "a plan is of trimtab.plan/1" in failure(str(file))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"echo hello\n", "holds no launch command of vLLM"),
        (b"", "holds no launch command of vLLM"),
        (b"{}", "holds no launch command of vLLM"),
        (b'{"schema": ', "holds no launch command"),
        (b"\0\1\2", "is no text"),
    ],
)
def test_file_without_a_command(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "thing").write_bytes(content)
    assert said in failure(str(tmp_path / "thing"))


def test_weights_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert f"Name the model's directory: {tmp_path}" in failure(str(tmp_path / "m.gguf"))


@pytest.mark.parametrize("text", ["./missing", "/missing/model", "~/missing", "../missing", "run.sh", "a/b/c", "x y"])
def test_a_path_where_nothing_is(text: str) -> None:
    assert f"there is no file or directory {text}" in failure(text, kind=ModelError)


def test_model_from_disk_or_hub(tmp_path: Path) -> None:
    with serve_hub() as server:
        server.repos[ID] = Repo(dict(FILES))
        hub = Hub(cache=tmp_path / "hub", endpoint=server.endpoint, token="")
        assert model_directory(str(tmp_path), hub, Watcher(), whole=True) == tmp_path
        assert not server.requests
        found = model_directory(ID, hub, Watcher(), whole=False)
        assert not (found / "model-00001-of-00002.safetensors").exists()
        assert model_directory(ID, hub, Watcher(), whole=True) == found
        assert (found / "model-00001-of-00002.safetensors").exists()
        with pytest.raises(ModelError, match="no file or directory"):
            model_directory("./gone", hub, Watcher(), whole=True)


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "schema": "trimtab.plan/1",\n  "command": ["vllm", "ser',
        '{"schema": "trimtab.plan/1"}',
        '{"schema": "trimtab.plan/1", "command": "vllm serve m"}',
        '{"schema": "trimtab.plan/1", "command": []}',
        '{"schema": "trimtab.plan/1", "command": ["vllm", 2]}',
        '{"schema": "trimtab.plan/1", "command": ["vllm", "serve", "m"], "env": [3]}',
    ],
)
def test_damaged_plan_is_called_one(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="is a damaged plan"):
        resolve_subject(str(file), None)
