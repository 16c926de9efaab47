"""Run a helper command to its end, line by line, and leave none of its processes behind."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

GRACE_S = 5.0
# Ask the kernel to end the command when Trimtab is gone (killed, terminal closed), then become it.
_TIED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
KEPT_LINES = 400


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: its exit status (negative: the signal) and its last lines, stdout and stderr together."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def last(self) -> str:
        """The last line that says something, or ""."""
        return next((line.strip() for line in reversed(self.lines) if line.strip()), "")


def run_command(
    argv: Sequence[str | Path],
    environ: Mapping[str, str],
    on_line: Callable[[str], None] = lambda line: None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
) -> Outcome:
    """Run `argv` in a session of its own and give each line to `on_line`; OSError when it cannot be started.

    TimeoutError when it is not done after `timeout_s`; the group is ended then.
    Whatever ends the wait early (Ctrl-C, an error in `on_line`), the whole group is ended first; a Trimtab that is
    killed takes the command with it.
    """
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(argv[0]))
    kept: list[str] = []
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), program, *(str(word) for word in argv[1:])],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert child.stdout is not None
    try:
        with _ended_after(child, timeout_s):
            for line in child.stdout:
                kept.append(line.rstrip("\n"))
                del kept[:-KEPT_LINES]
                on_line(kept[-1])
            return Outcome(child.wait(), tuple(kept))
    finally:
        _end_group(child)
        child.stdout.close()


@contextmanager
def _ended_after(child: subprocess.Popen[str], timeout_s: float | None) -> Iterator[None]:
    """Kill the group from a thread when the time is over, which ends the reading of its output."""
    over = threading.Event()

    def end() -> None:
        over.set()
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(timeout_s, end) if timeout_s is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
    if over.is_set():
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _end_group(child: subprocess.Popen[str]) -> None:
    """TERM, then KILL, to the group, also when its leader has ended and left children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_S)
