"""`trimtab top` over real HTTP servers: one frame, frames as JSON lines, a screen in a terminal, wrong subjects."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_up import clear, environment, record, running
from tests.engine.test_vitals import V0_2, V1
from tests.fakes.metrics_server import serving
from tests.supervisor.fake import wait_for

TOP = [sys.executable, "-m", "trimtab", "top"]


def top(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOP, *words], env=environment(home), capture_output=True, text=True, timeout=60, check=False
    )


def test_one_frame_of_a_url(home: Path) -> None:
    with serving(V1) as server:
        done = top(home, f"{server.url}/v1", "--every", "0.2")
        assert server.asked >= 2
    assert done.returncode == 0, done.stderr
    for part in ("running", "waiting", "75%", "preemptions", "7 since its start", "host free GiB", "\nKV-bound"):
        assert (part in done.stdout) is (part != "\nKV-bound")
    assert "\x1b" not in done.stdout


def test_what_an_old_version_does_not_tell_is_said(home: Path) -> None:
    with serving(V0_2.replace("running 0.0", "running 2.0")) as server:
        done = top(home, server.url, "--every", "0.1")
        told = json.loads(top(home, server.url, "--once", "--json", "--every", "0.1").stdout)
    assert "not told by this server: waiting, tokens, prompt tokens, prefix hits, preemptions" in done.stdout
    assert "whether its KV cache limits it is not known" in done.stdout
    assert (told["preemptions"], told["tokens_s"], told["reading"]["kind"]) == (None, None, "unknown")
    assert told["missing"] == ["waiting", "tokens", "prompt tokens", "prefix hits", "preemptions"]


def test_what_is_not_told_is_named_in_chinese(home: Path) -> None:
    with serving(V0_2.replace("running 0.0", "running 2.0")) as server:
        done = top(home, "--lang", "zh", server.url, "--every", "0.1")
    assert "此服务器未提供：等待, token 数, 提示 token, 前缀命中, 抢占" in done.stdout


def test_not_vllm_is_no_ok(home: Path) -> None:
    with serving("python_info 1\n") as server:
        done = top(home, server.url, "--every", "0.1")
    assert "nothing to judge" in done.stdout


def test_json_lines_until_interrupted(home: Path) -> None:
    with (
        serving(V1) as server,
        subprocess.Popen(
            [*TOP, server.url, "--json", "-f", "--every", "0.1"],
            env=environment(home),
            stdout=subprocess.PIPE,
            text=True,
        ) as child,
    ):
        assert child.stdout is not None
        frames = [json.loads(child.stdout.readline()) for _ in range(3)]
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)
    assert child.returncode == 0
    assert {frame["schema"] for frame in frames} == {"trimtab.top/1"}
    assert frames[0]["running"] == 5


def test_a_screen_in_a_terminal_is_left_as_it_was(home: Path) -> None:
    with serving(V1) as server:
        ours, theirs = pty.openpty()
        with subprocess.Popen([*TOP, server.url, "--every", "0.1"], env=environment(home), stdout=theirs) as child:
            os.close(theirs)
            shown = b""
            while shown.count(b"\x1b[H") < 3:
                assert select.select([ours], [], [], 30)[0]
                shown += os.read(ours, 65536)
            child.send_signal(signal.SIGINT)
            shown += read_rest(ours)
        os.close(ours)
    assert child.returncode == 0
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l")
    assert shown.endswith(b"\x1b[?25h\x1b[?1049l")


def read_rest(fd: int) -> bytes:
    rest = b""
    while select.select([fd], [], [], 30)[0]:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            return rest
        if not chunk:
            return rest
        rest += chunk
    return rest


def test_a_server_of_this_host_by_name_and_without(home: Path, model: Path, python: Path) -> None:
    with running(home, str(model), "--engine-python", str(python), "--no-verify") as child:
        seen = wait_for(lambda: record(home, "ready"))
        named, only = top(home, seen.name, "--once"), top(home, "--once")
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert named.returncode == only.returncode == 0, named.stderr
    assert f"{seen.name}  {seen.base_url}" in named.stdout
    assert " / 4" in named.stdout  # --max-num-seqs of its command
    ended = top(home, seen.name)
    assert ended.returncode == 2
    clear(ended, "is not running (stopped)", f"trimtab history {seen.name}")


def test_one_that_is_being_started(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--force")
    with running(home, *words, knobs="--hold load") as child:
        seen = wait_for(lambda: record(home, "compiling"))  # what the last line of a finished load leads to
        done = top(home, seen.name)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert done.returncode == 2
    clear(done, "does not serve yet", "trimtab logs -f")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9 does not answer"),
        ("http://", "is not a URL of a server"),
        ("ftp://host/x", "is not a URL of a server"),
        ("nobody", "there is no server named 'nobody'"),
    ],
)
def test_wrong_subjects(home: Path, subject: str, said: str) -> None:
    done = top(home, subject)
    assert done.returncode == 2
    clear(done, said)
