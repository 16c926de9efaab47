"""The engine's parent process: ends the engine when the supervisor is gone, and reaps what the engine leaves behind.

Run as a script (`python -I -S guard.py FD BOUND_S -- argv`), as leader of a session of its own, with as little of the
standard library as will do: it stays in memory as long as the engine. FD is one end of a socket pair whose other end
only the supervisor holds: it says "end" there, and its closing means that the supervisor is dead. The guard answers
with lines: `pid N` or `failed TEXT`, then `exit RETURNCODE`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing itself is half a megabyte
if TYPE_CHECKING:
    from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> int:
    """Start the engine, watch both sides, leave no process behind."""
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    bound_s = float(sys.argv[2])
    wake = _wake_on_signals()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of the engine become ours, so that they can be found and reaped
    engine = _start(sys.argv[4:], control)
    if engine is None:
        return 127
    _tell(control, f"pid {engine}")
    status: int | None = None
    kill_at: float | None = None
    watched = [wake, control]
    while status is None:
        timeout = None if kill_at is None else max(0.05, kill_at - time.monotonic())
        ready, _, _ = select.select(watched, [], [], timeout)
        if control in ready:
            if not _heard(control):  # the supervisor is gone
                kill_at = time.monotonic() + bound_s
                watched.remove(control)
            _signal(engine, signal.SIGTERM)
        if kill_at is not None and time.monotonic() >= kill_at:
            _signal(engine, signal.SIGKILL)
        if wake in ready:
            _drained(wake)
        status = _reap(engine)
    _end_the_rest(bound_s)
    _tell(control, f"exit {status}")
    return 0


def _wake_on_signals() -> int:
    """A pipe that turns readable at any signal. Handlers, not SIG_IGN: an ignored signal stays ignored after exec."""
    wake, waker = os.pipe()
    for fd in (wake, waker):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return wake


def _start(argv: list[str], control: int) -> int | None:
    """The engine's pid once the program runs in it; None, after saying why, when it could not be executed."""
    guard = os.getpid()
    failure, failed = os.pipe()  # closed by a successful exec
    child = os.fork()
    if child == 0:
        _become(argv, guard, failed)
    os.close(failed)
    with open(failure, "rb") as reason:
        why = reason.read().decode(errors="replace")
    if why:
        _tell(control, "failed " + why.replace("\n", " "))
        return None
    return child


def _become(argv: list[str], guard: int, failed: int) -> NoReturn:
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died before the line above
            os._exit(1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(argv[0], argv, os.environ)
    except OSError as error:
        os.write(failed, f"{argv[0]}: {error.strerror}".encode(errors="replace"))
    finally:
        os._exit(127)


def _reap(engine: int) -> int | None:
    """Reap every child that has ended; the engine's return code (negative: signal) once it is among them."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == engine:
            code = os.waitstatus_to_exitcode(status)


def _end_the_rest(bound_s: float) -> None:
    """Ask the engine's orphans to end, then kill them; on return none is our child."""
    began = time.monotonic()
    asked: set[int] = set()  # the children of an orphan become ours when it ends: later ones are asked too
    while True:
        _reap(0)
        left = _children()
        if not left:
            return
        late = time.monotonic() - began > bound_s
        for pid in left:
            if late or pid not in asked:
                _signal(pid, signal.SIGKILL if late else signal.SIGTERM)
        asked.update(left)
        select.select([], [], [], 0.02)


def _children() -> list[int]:
    """Living children. Without /proc (not Linux) orphans do not become ours either, and the supervisor ends them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _heard(control: int) -> bytes:
    """What the supervisor said; nothing when it is gone."""
    try:
        return os.read(control, 4096)
    except OSError:
        return b""


def _tell(control: int, said: str) -> None:
    try:
        os.write(control, said.encode("utf-8", "replace") + b"\n")  # a line is far smaller than the socket's buffer
    except OSError:
        return  # the supervisor is gone; the loop notices


def _drained(wake: int) -> None:
    try:
        os.read(wake, 4096)
    except BlockingIOError:
        return


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
