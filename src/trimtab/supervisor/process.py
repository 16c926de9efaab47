"""The operating system's side of one engine: start it in a session of its own, pump its output, end all of it.

The only module that starts and signals processes. No policy: it does what it is told and says what it saw.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor.happenings import ExitStatus
from trimtab.supervisor.ports import holder
from trimtab.supervisor.rotation import RotatingLog

MARK = "TRIMTAB_SERVER"  # in the environment of every process of an engine: finds those that left the session
GUARD = Path(__file__).with_name("guard.py")
GUARD_BOUND_S = 3.0  # what the guard gives the engine once the supervisor is gone, and then what it leaves behind
LONGEST_LINE = 1 << 16  # bytes of a line that are looked at; the log file gets all of it
LAST_OUTPUT_S = 2.0  # how long after the exit the pipe may stay open


class Engine:
    """A running engine. Its callbacks come from its threads: `on_line` per line of output, `on_exit` once, last."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: RotatingLog,
        on_line: Callable[[str], None],
        on_exit: Callable[[ExitStatus], None],
    ) -> None:
        """HostError when the program cannot be executed. `log` is closed with the engine."""
        self.mark = uuid.uuid4().hex
        self._on_line, self._on_exit = on_line, on_exit
        self._log = log
        self._control, theirs = socket.socketpair()
        read, write = os.pipe()
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(GUARD_BOUND_S), "--", *argv],
                stdin=subprocess.DEVNULL, stdout=write, stderr=write, pass_fds=(theirs.fileno(),),
                env={**env, MARK: self.mark}, cwd=cwd, start_new_session=True,
            )  # fmt: skip
        except OSError as error:  # no process, no memory, no directory to run in
            os.close(read)
            self._control.close()
            log.close()
            raise HostError(
                msg("could not start the engine: {reason}", reason=error),
                hint=msg("Look at the limits of this user and at the directory it runs in: {cwd}", cwd=cwd),
            ) from error
        finally:
            os.close(write)
            theirs.close()
        self.group = self._guard.pid
        self._pump = threading.Thread(target=self._copy_output, args=(read,), name="output", daemon=True)
        self._pump.start()
        self._said = self._control.makefile("rb")
        self.pid = self._first_answer(argv)
        threading.Thread(target=self._wait, name="wait", daemon=True).start()

    def ask_to_end(self) -> None:
        """SIGTERM to the engine's main process, which ends its own children; the guard ends what it forgets."""
        try:
            self._control.sendall(b"end\n")
        except OSError:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group, at once."""
        if self._guard.returncode is None:
            _signal_group(self.group, signal.SIGKILL)

    def listens_on(self, port: int) -> bool:
        """Whether the process on `port` is one of the engine's, as far as this user may see."""
        found = holder(port)
        return found is None or found.pid == 0 or found.pid in members(self.group, self.mark)

    def _first_answer(self, argv: Sequence[str]) -> int:
        what, said = next(self._answers(), ("failed", f"{argv[0]}: the guard process did not start"))
        if what == "pid":
            return int(said)
        self._guard.wait()
        self._pump.join(LAST_OUTPUT_S)
        self._hang_up()
        self._log.close()
        raise HostError(
            msg("could not start the engine: {reason}", reason=said),
            hint=msg("Check the path of the engine's Python: trimtab engine list."),
        )

    def _wait(self) -> None:
        status = self._exit_status()
        members_gone(self.group, self.mark)
        self._pump.join(LAST_OUTPUT_S)
        self._log.close()
        self._on_exit(status)

    def _exit_status(self) -> ExitStatus:
        """What the guard says, or, when it was killed together with the engine, how it ended itself."""
        code: int | None = None
        for what, said in self._answers():
            code = int(said) if what == "exit" else code
        returncode = self._guard.wait()
        self._hang_up()
        return ExitStatus(returncode if code is None else code)

    def _answers(self) -> Iterator[tuple[str, str]]:
        """The guard's lines until it is gone: its end closes, or is reset when it was killed with a word unread."""
        try:
            for line in self._said:
                what, _, said = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
                yield what, said
        except ConnectionResetError:
            return

    def _hang_up(self) -> None:
        self._said.close()
        self._control.close()

    def _copy_output(self, read: int) -> None:
        with open(read, "rb", buffering=0) as pipe:
            held = b""
            while chunk := pipe.read(1 << 16):
                self._log.write(chunk)
                *lines, held = (held + chunk).replace(b"\r", b"\n").split(b"\n")
                held = held[:LONGEST_LINE]
                for line in lines:
                    if line:
                        self._on_line(line[:LONGEST_LINE].decode("utf-8", "replace"))
            if held:
                self._on_line(held.decode("utf-8", "replace"))


def started_at(pid: int) -> float | None:
    """When process `pid` began, in seconds since the host's start; None when there is none (a zombie is none).

    Not since the epoch: that changes when the clock is set, and a living process would be taken for another.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return _started_elsewhere(pid) if not Path("/proc/self/stat").exists() else None
    return None if fields[0] in _GONE else int(fields[19]) / os.sysconf("SC_CLK_TCK")  # proc(5): starttime


_GONE = ("Z", "X", "x")


def _started_elsewhere(pid: int) -> float | None:
    """Where there is no /proc (macOS)."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def boot_id() -> str:
    """Which start of the host this is; "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def is_alive(pid: int, started: float, boot: str = "") -> bool:
    """Whether `pid` is still the process that began at `started`, in the same start of the host where that is known."""
    now = started_at(pid)
    return now is not None and abs(now - started) < 1.0 and boot in ("", boot_id())


def members(group: int, mark: str) -> list[int]:
    """Living processes of the session and group `group`, or carrying `mark` in their environment; no zombies."""
    found: list[int] = []
    for process in psutil.process_iter():
        if process.pid in (0, os.getpid()):
            continue
        try:
            belongs = group > 1 and group in (os.getsid(process.pid), os.getpgid(process.pid))
            if (belongs or (mark and process.environ().get(MARK) == mark)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or not ours to look at
    return found


def members_gone(group: int, mark: str, bound_s: float = 10.0) -> bool:
    """Kill what is left of an engine until no member but zombies is there; False when `bound_s` was too short."""
    end = time.monotonic() + bound_s
    while left := members(group, mark):
        for pid in left:
            send(pid, signal.SIGKILL)
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def send(pid: int, number: int) -> None:
    """Signal one process; a process that is gone is no error. UsageError when it belongs to someone else."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UsageError(
            msg("process {pid} belongs to another user", pid=pid),
            hint=msg("Run the command as the user who started it."),
        ) from error


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
