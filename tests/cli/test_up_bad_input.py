"""`trimtab up` on what cannot be: refused before anything starts, with one clear error, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_up import clear, environment, left_over, record, running, up
from tests.supervisor.fake import wait_for


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "SUBJECT is empty"),
        (("  ",), "SUBJECT is empty"),
        (("MODEL", "--engine-python", "/etc"), "/etc is a directory, not a Python"),
        (("MODEL", "--engine-python", ""), ". is a directory, not a Python"),
        (("MODEL", "--engine-python", "/nowhere/python"), "there is no program /nowhere/python"),
        (("--demo", "--engine-python", "/nowhere/python"), "there is no program /nowhere/python"),
        (("--demo", "--engine", "nosuch"), "no engine is called 'nosuch'"),
        (("MODEL", "--engine", ""), "no engine is called ''"),
        (("MODEL", "--host", "192.0.2.1"), "nothing can listen on '192.0.2.1' here"),
        (("MODEL", "--host", "a b", "--port", "8123"), "nothing can listen on 'a b' here"),
        (("MODEL", "--host", "a" * 300), "nothing can listen on 'aaa"),
        (("MODEL", "--concurrency", "99999999"), "99,999,999 requests at once are more than one step holds: 2,048"),
        (("MODEL", "--lang", "xx"), "--lang takes en, zh, not 'xx'"),
        (("MODEL", "--lang"), "--lang takes en, zh, not ''"),
    ],
)
def test_words_that_cannot_be(home: Path, model: Path, python: Path, words: tuple[str, ...], said: str) -> None:
    given = [str(model) if word == "MODEL" else word for word in words]
    engine = () if "--engine-python" in words or "--engine" in words else ("--engine-python", str(python))
    done = up(home, *given[:1], *engine, *given[1:])
    assert (done.returncode, done.stdout) == (2, "")
    clear(done, said)
    assert not (home / "state").exists()


@pytest.mark.parametrize("flag", ["--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"])
@pytest.mark.parametrize("whole", [True, False])
def test_more_ranks_than_numa_nodes(home: Path, model: Path, python: Path, flag: str, whole: bool) -> None:
    """vLLM's CPU back end gives each rank a node (vllm/utils/ompmultiprocessing.py 0.32)."""
    words = ("--", "vllm", "serve", str(model)) if whole else (str(model), "--")
    at = words.index("--")
    done = up(home, *words[:at], "--engine-python", str(python), *words[at:], flag, "99")
    assert (done.returncode, done.stdout) == (2, "")
    clear(done, f"{flag} 99 needs 99 NUMA nodes", "this host has")
    assert not (home / "state").exists()


def test_ranks_that_the_user_binds_himself_are_left_to_vllm(home: Path, model: Path, python: Path) -> None:
    words = ("VLLM_CPU_OMP_THREADS_BIND=0|1", "vllm", "serve", str(model), "--tensor-parallel-size", "2")
    done = up(home, "--engine-python", str(python), "--", *words)
    assert done.returncode == 1
    clear(done, "unrecognized arguments: --tensor-parallel-size")  # the stand-in knows no such flag


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("vllm serve $NO_SUCH --port 8000", "the model of the launch command is $NO_SUCH, which nothing here sets"),
        ("vllm serve m --max-model-len $(nproc)", "--max-model-len of the launch command is $(nproc)"),
        ("vllm serve <model>", "the model of the launch command is <model>"),
        ("vllm serve m --port 99999", "--port is '99999'; a port is a number from 1 to 65535"),
        ("vllm serve m --port $NO_SUCH", "--port is '$NO_SUCH'; a port is a number from 1 to 65535"),
        ("vllm serve m --host 192.0.2.1", "nothing can listen on '192.0.2.1' here"),
        ("vllm serve m --tensor-parallel-size 0", "--tensor-parallel-size does not take '0'"),
        ("vllm serve", "names no model"),
        ("vllm serve a\nvllm serve b", "holds 2 launch commands"),
    ],
)
def test_command_of_a_file_that_cannot_be(home: Path, python: Path, tmp_path: Path, words: str, said: str) -> None:
    script = tmp_path / "run.sh"
    script.write_text(words + "\n")
    done = up(home, str(script), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, said)
    assert left_over(home) == []


def test_a_command_that_settles_all_itself(home: Path, model: Path, python: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        f"X=1 VLLM_API_KEY=$NO_SUCH vllm serve $MODEL_DIR --host 127.0.0.1 --port $PORT --api-key sk-{'$'}{{KEY}}"
        " --served-model-name alpha beta\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "trimtab", "up", str(script), "--engine-python", str(python), "--no-verify"],
        env={**environment(home), "MODEL_DIR": str(model), "PORT": "18765", "KEY": "mine"}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            seen = wait_for(lambda: record(home, "ready"))
        finally:
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=30)
    assert (seen.models, seen.port, seen.api_key) == (("alpha",), 18765, "sk-mine")
    assert str(model) in seen.argv
    assert "sk-mine" not in " ".join(seen.argv)
    assert child.returncode == 0


def test_a_place_with_blanks_and_other_letters(home: Path, model: Path, python: Path, tmp_path: Path) -> None:
    other = tmp_path / "模型 目录" / "ünï llama"
    other.parent.mkdir()
    os.rename(model, other)
    with running(home, str(other), "--engine-python", str(python), "--no-verify") as child:
        seen = wait_for(lambda: record(home, "ready"))
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    assert seen.models == ("ünï llama",)
    assert f"vllm serve '{other}'" in out


@pytest.mark.parametrize(
    "key", ["sk-one\nsk-two", "sk-one\r\n", "sk-\u94a5\u5319", " sk-one"], ids=["lines", "end", "letters", "blank"]
)
def test_a_key_that_no_header_brings_over(
    home: Path, model: Path, python: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", key)
    done = up(home, str(model), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, "the API key holds a line break or another character that no HTTP header brings over")
    assert "sk-" not in done.stderr
    assert left_over(home) == []
