"""Launches in the many ways people keep them (tests/fixtures/launches): what is read, and edits that come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.engine.command import apply_edits, read_commands

LAUNCHES = Path(__file__).parents[1] / "fixtures" / "launches"
EXPECTED = json.loads((LAUNCHES / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_read(name: str) -> None:
    reading = read_commands((LAUNCHES / name).read_bytes(), name)
    assert [str(p.message) for p in reading.problems] == []
    assert len(reading.commands) == len(EXPECTED[name])
    for command, wanted in zip(reading.commands, EXPECTED[name], strict=True):
        assert (command.form, command.model.text if command.model else None) == (wanted["form"], wanted["model"])
        assert {flag: command.get(flag) for flag in wanted["flags"]} == wanted["flags"]


@pytest.mark.parametrize("name", EXPECTED)
def test_an_edit_is_read_back(name: str) -> None:
    text = (LAUNCHES / name).read_bytes().decode()
    command = read_commands(text, name).commands[0]
    after = apply_edits(text, command.edit_set("seed", "77"))
    again = read_commands(after, name)
    assert again.problems == ()
    assert (again.commands[0].get("seed"), again.commands[0].get("port")) == ("77", command.get("port"))
    assert len(again.commands) == len(EXPECTED[name])


def test_every_launch_is_listed() -> None:
    assert {p.name for p in LAUNCHES.iterdir()} == {"expected.json", *EXPECTED}
    assert len(EXPECTED) > 80


@pytest.mark.parametrize(
    "text", ["CMD ['--model', 'org/m']", "CMD --model org/m", 'ENTRYPOINT ["vllm", "serve"]\nCMD org/m --port 1']
)
def test_arguments_that_docker_hands_to_a_shell_are_told_of(text: str) -> None:
    reading = read_commands(f"FROM vllm/vllm-openai:v0.26.0\n{text}\n", "Dockerfile")
    assert [str(p.message) for p in reading.problems] == [
        "CMD is no JSON list of strings, so the entry point gets /bin/sh -c and one text, not these arguments."
    ]
    assert reading.problems[0].line == 1 + len(text.split("\n"))


def test_a_list_that_may_have_grown_is_not_complete() -> None:
    text = 'A=(--port 1)\nif x; then A+=(--seed 2); fi\nvllm serve m "${A[@]}"\n'
    (command,) = read_commands(text).commands
    assert (command.get("port"), command.get("seed")) == ("1", "2")
    assert any(stray.unknown for stray in command.strays)
