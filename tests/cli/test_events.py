"""`trimtab up --on-event --webhook` over a real server that becomes ready and crashes; wrong words are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_up import clear, record, running, up
from tests.supervisor.fake import wait_for
from tests.supervisor.test_events import hook


def test_ready_and_crashed_are_told(home: Path, model: Path, python: Path) -> None:
    die, out, said = home.parent / "die", home.parent / "told", home.parent / "said"
    said.write_text("torch.OutOfMemoryError: CUDA out of memory. key sk-0123456789abcdefghij")
    knobs = f"--die-when {die} --print {said}"
    with hook() as (url, got):
        words = ("--no-verify", "--no-restart", "--force", "--on-event", f"cat >> {out}", "--webhook", url)
        with running(home, str(model), "--engine-python", str(python), *words, knobs=knobs) as child:
            wait_for(lambda: record(home, "ready"))
            die.touch()
            child.communicate(timeout=30)
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [event["event"] for event in told] == [event["event"] for event in got] == ["ready", "crashed"]
    assert told[1]["reason"] == "ended with exit code 1"
    assert "out of memory" in json.dumps(told[1]["diagnosis"])
    assert "sk-0123456789abcdefghij" not in json.dumps(told)
    assert told[0]["diagnosis"] is None
    assert told[0]["name"] == "tiny-llama"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--webhook", "example.org/x"), "--webhook 'example.org/x' is no address"),
        (("--webhook", "http://host:0/"), "is no address"),
        (("--webhook", "http://[::1"), "is no address"),
        (("--on-event", " "), "--on-event is empty"),
    ],
)
def test_wrong_words(home: Path, model: Path, words: tuple[str, str], said: str) -> None:
    done = up(home, str(model), *words)
    assert done.returncode == 2
    clear(done, said)


def test_the_settings_file_names_listeners_too(home: Path, model: Path) -> None:
    settings = home / "config" / "trimtab" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[up]\non_event = ["true"]\nwebhook = ["https://hooks.example.org/x", "no address"]\n')
    done = up(home, str(model))
    assert done.returncode == 2
    clear(done, "--webhook 'no address' is no address")
