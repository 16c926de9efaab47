"""The door: exit codes, one clear line for a wrong command line, and what stands after `--`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab import __version__
from trimtab.cli.main import split


def trimtab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "trimtab", *words], capture_output=True, text=True, check=False)


def test_version() -> None:
    assert trimtab("--version").stdout == f"trimtab {__version__}\n"


@pytest.mark.parametrize("words", [["bogus"], ["--bogus"]])
def test_what_does_not_exist_is_named(words: list[str]) -> None:
    done = trimtab(*words)
    assert done.returncode == 2
    assert words[0] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "--prot", "1"], "trimtab: 没有选项 --prot\n  -> 是不是想用 --port？vLLM 自己的参数写在 -- 之后\n"),
        (["up", "--max-model-len", "8"], "trimtab: 没有选项 --max-model-len\n  -> "),
        (["plan", "m", "--context"], "trimtab: --context 需要一个值\n  -> "),
    ],
)
def test_an_option_that_is_wrong_is_told_in_the_language(words: list[str], said: str) -> None:
    done = trimtab("--lang", "zh", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


@pytest.mark.parametrize("words", [[], ["engine"]])
def test_no_verb_shows_the_help_alone(words: list[str]) -> None:
    done = trimtab(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: trimtab")
    assert "->" not in done.stderr


def test_words_after_the_dashes_are_kept_apart() -> None:
    assert split(["up", "m", "--", "--max-model-len", "8"]) == (["up", "m"], ["--max-model-len", "8"])
    assert split(["up", "m"]) == (["up", "m"], None)
    assert split(["up", "--", "a", "--", "b"]) == (["up"], ["a", "--", "b"])


def test_a_flag_can_be_explained_as_it_is_written() -> None:
    done = trimtab("explain", "--max-num-seqs")
    assert done.returncode == 0
    assert "--max-num-seqs" in done.stdout


def test_a_full_disk_under_the_report_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "trimtab", "flags", "diff", "0.10", "0.11"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--lang", "zh", "ps"], ["ps", "--lang", "zh"], ["ps", "--lang=zh"]])
def test_the_language_may_stand_anywhere(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", *words], env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "没有" in done.stdout


def test_a_closed_standard_output_is_no_bug() -> None:
    words = [sys.executable, "-m", "trimtab", "--version"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    words = [sys.executable, "-m", "trimtab", "flags", "diff", "0.10", "0.11"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_a_language_that_is_none(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TRIMTAB_LANG": "xx", "LC_ALL": "C"}
    for words, code in ((["ps"], 0), (["ps", "--lang", "xx"], 2), (["ps", "--lang"], 2), (["--lang="], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "trimtab", *words], env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert ("--lang takes en, zh" in done.stderr) == bool(code)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["logs", "down"])
def test_an_empty_name_is_no_server(verb: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", verb, ""], env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no server named ''" in done.stderr


@pytest.mark.parametrize("place", ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"])
def test_a_place_that_may_not_be_read(place: str, tmp_path: Path) -> None:
    """A name longer than any file's is refused to every user, root included."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "HF_"))}
    environ = {**kept, "HOME": str(tmp_path), place: str(tmp_path / ("x" * 300))}
    for words in (["ps"], ["engine", "list"], ["plan", "acme/x"], ["up", "-d", "acme/x"]):
        done = subprocess.run(
            [sys.executable, "-m", "trimtab", *words], env={**environ, "HF_HUB_OFFLINE": "1"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 2)
