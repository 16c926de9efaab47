"""A command is heard line by line, and whatever ends the wait ends its whole group."""

from __future__ import annotations

import os
import sys

import psutil
import pytest

from trimtab.supervisor.children import run_command

GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
child.wait()
"""


def test_lines_and_status() -> None:
    heard: list[str] = []
    script = "import sys; print('a'); print('b', file=sys.stderr, flush=True); sys.exit(3)"
    outcome = run_command([sys.executable, "-u", "-c", script], os.environ, heard.append)
    assert outcome.code == 3
    assert heard == ["a", "b"] == list(outcome.lines)
    assert outcome.last == "b"


def test_error_while_listening_ends_the_group() -> None:
    heard: list[int] = []

    def stop(line: str) -> None:
        heard.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command([sys.executable, "-c", GRANDCHILD], os.environ, stop)
    left = [psutil.Process(pid) for pid in heard if psutil.pid_exists(pid)]
    assert psutil.wait_procs(left, timeout=10)[1] == []


def test_what_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        run_command(["/no-such-program"], os.environ)
