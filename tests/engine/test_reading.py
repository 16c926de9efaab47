"""Launches read from files of every form: each fixture has the expected result beside it ("?": not known)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.engine.command import FlagUse, LaunchCommand, Reading, read_commands

COMMANDS = Path(__file__).parents[1] / "fixtures" / "commands"
FILES = sorted(p for p in COMMANDS.iterdir() if not p.name.endswith(".expected.json"))


def flag(use: FlagUse) -> list[str | None]:
    name = f"{'no-' if use.negated else ''}{use.dotted}"
    return [name, "?" if use.unknown else use.value]


def seen(command: LaunchCommand, keys: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "form": str(command.form),
        "model": command.model.text if command.model else None,
        "flags": [flag(use) for use in command.flags],
        "env": {n: "?" if u.unknown and u.value is not None else u.value for n, u in command.env.items()},
    }
    if "strays" in keys:
        found["strays"] = [s.text for s in command.strays]
    if "container" in keys:
        box = command.container
        assert box is not None
        values = {name: getattr(box, name) for name in keys["container"]}
        found["container"] = {n: list(v) if isinstance(v, tuple) else (str(v) if hasattr(v, "text") else v)
                              for n, v in values.items()}  # fmt: skip
    return found


def expected(path: Path) -> list[dict[str, Any]]:
    stem = path.name if path.name == "Dockerfile" else path.stem
    rows: list[dict[str, Any]] = json.loads((COMMANDS / f"{stem}.expected.json").read_text())
    return rows


def read(path: Path) -> Reading:
    return read_commands(path.read_bytes(), path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_reads_as_expected(path: Path) -> None:
    reading = read(path)
    assert not [str(p.message) for p in reading.problems]
    rows = expected(path)
    assert [seen(c, row) for c, row in zip(reading.commands, rows, strict=False)] == rows
    assert len(reading.commands) == len(rows)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_spans_point_at_what_they_name(path: Path) -> None:
    for command in read(path).commands:
        for use in command.flags:
            text = command.source.data[use.spelling_span.start : use.spelling_span.end].decode()
            assert use.spelling in text or text.startswith(("$", '"$'))
            if use.value is not None and use.value_span is not None and len(use.values) == 1 and "{" not in use.value:
                value = command.source.data[use.value_span.start : use.value_span.end].decode()
                assert use.value in value or "$" in value


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_same_without_a_file_name(path: Path) -> None:
    reading = read_commands(path.read_bytes())
    assert [c.argv() for c in reading.commands] == [c.argv() for c in read(path).commands]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('services:\n  v:\n    image: foo\n    command: bash -c "vllm serve m --port 1 && echo"\n', "m --port 1"),
        (
            'services:\n  v:\n    image: i\n    command: >\n      sh -c "vllm serve m\n      --port ${P:-1}"\n',
            "m --port 1",
        ),
        ("services:\n  v:\n    image: i\n    entrypoint: vllm serve\n    command: m --seed 1\n", "m --seed 1"),
        ("run: |\n  conda activate vllm\n  vllm serve m -tp $N\n", "m --tensor-parallel-size $N"),
        ('{"containers": [{"image": "vllm/vllm-openai:v1", "args": ["--model", "m\\u00fc"]}]}', "mü"),
        ("- docker_container:\n    image: vllm/vllm-openai:v0.5.0\n    command: --model m\n", "m"),
        ("docker run -itp8000:8000 -eA=1 --name v vllm/vllm-openai m --seed 1", "m --seed 1"),
        ('serve() {\n  vllm serve "$1" --port "${2:-8000}"\n}\nserve org/m\n', "$1 --port 8000"),
        ("!vllm serve m --seed 1", "m --seed 1"),
        ("(venv) user@host:~$ vllm serve m", "m"),
    ],
)
def test_reads_one_line_forms(text: str, words: str) -> None:
    reading = read_commands(text)
    assert not reading.problems
    assert [" ".join(c.argv()[2:]) for c in reading.commands] == [words]


def test_an_entry_point_that_is_given_is_told() -> None:
    (own, given) = read_commands(
        "docker run vllm/vllm-openai vllm serve m\ndocker run --entrypoint vllm vllm/vllm-openai serve m\n"
    ).commands
    assert own.container is not None
    assert given.container is not None
    assert own.container.entrypoint is None
    assert [w.text for w in own.program] == ["vllm", "serve"]
    assert str(given.container.entrypoint) == "vllm"


def test_second_prompts_of_a_transcript_are_not_redirections() -> None:
    text = "$ vllm serve m \\\n>   --swap-space 4 \\\n>   --port 8000\nINFO: started\n"
    (command,) = read_commands(text, "a.sh").commands
    assert [flag(use) for use in command.flags] == [["swap-space", "4"], ["port", "8000"]]
    (command,) = read_commands("vllm serve m --port 1 \\\n> log 2>&1\n", "a.sh").commands
    assert [flag(use) for use in command.flags] == [["port", "1"]]


def test_a_model_beside_nothing_but_flags_is_a_configuration() -> None:
    (command,) = read_commands("model: a/b\nswap_space: 4\nport: 8000\n", "c.yaml").commands
    assert [flag(use) for use in command.flags] == [["model", "a/b"], ["swap-space", "4"], ["port", "8000"]]
    assert not read_commands("model: a/b\nname: x\nport: 8000\n", "c.yaml").commands
