"""`trimtab up` in a terminal of its own that is closed, with and without `nohup`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.test_up import environment, left_over, record
from tests.supervisor.fake import wait_for

TAKES_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@contextmanager
def in_terminal(home: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`up` as the leader of a session on a terminal; what to close so that the terminal is gone."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", TAKES_TERMINAL, *words], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(home) | {"TERM": "xterm"}, start_new_session=True, cwd=home.parent,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield child, ours
    finally:
        child.kill()
        child.wait()


def shown(terminal: int, over: threading.Event) -> None:
    """Take what is shown, as a terminal does, until it is closed."""
    with suppress(OSError):
        while not over.is_set():
            os.read(terminal, 65536)


@pytest.mark.parametrize("patient", [False, True], ids=["closed", "nohup"])
def test_a_terminal_that_is_closed(home: Path, model: Path, python: Path, patient: bool) -> None:
    nohup = ("/usr/bin/env", "nohup") if patient else ()
    up = (sys.executable, "-m", "trimtab", "up", str(model), "--engine-python", str(python), "--no-verify")
    with in_terminal(home, *nohup, *up) as (child, terminal):
        over = threading.Event()
        reader = threading.Thread(target=shown, args=(terminal, over), daemon=True)
        reader.start()
        wait_for(lambda: record(home, "ready"))
        over.set()
        wait_for(lambda: not reader.is_alive() or os.write(terminal, b"\n") < 0)
        os.close(terminal)
        if not patient:
            assert child.wait(30) == 0
            assert record(home, "stopped")
        else:
            assert wait_for(lambda: record(home, "ready"))
            child.terminate()
            assert child.wait(30) == 0
    assert left_over(home) == []
