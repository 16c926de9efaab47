"""Kill servers in every way, many times, and count what is left, what is lost, and how long until they serve again.

Real supervisors, guards and processes over the fake engine of the tests (an API server, a core and a worker of its
own). Usage:

    python -m benchmarks.fault_drill [--share 1.0] [--restarts 1000] [--only NAME] [--json FILE]

`--share 0.1` does a tenth of each fault; Ctrl-C goes on to the next one. A witness file, written by
the supervising process after each journal entry and read back, tells which states the journal must hold. Prints the
table of docs/reliability.md; exit code 1 when anything was left over, lost or late.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from tests.supervisor.fake import spec

from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry
from trimtab.supervisor.happenings import Limits
from trimtab.supervisor.journal import read_journal
from trimtab.supervisor.launching import Callbacks, Diagnosis, Event, StateChanged
from trimtab.supervisor.process import members
from trimtab.supervisor.stopping import stop_on_signals
from trimtab.supervisor.supervisor import supervise
from trimtab.supervisor.watch import Pace

TOP = Path(__file__).parents[1]
BOUND_S, ORPHAN_BOUND_S, START_S = 30.0, 10.0, 60.0
LIMITS = Limits(
    max_restarts=10**6, first_wait_s=0.01, longest_wait_s=0.01, stop_s=5.0, dead_s=0.5, silent_s=1.0, drain_s=2.0
)
PACE = Pace(
    ready_s=0.02, look_s=0.1, doubt_s=0.1, stall_s=0.4, proof_s=0.4, token_s=1.0, drain_s=0.05, health_s=0.5
)  # fmt: skip
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("CLOCK_STEP"), "r") : NULL;
    long step = 0;
    if (file) { if (fscanf(file, "%ld", &step) == 1) now->tv_sec += step; fclose(file); }
    return code;
}
"""


@dataclass
class Row:
    """One kind of fault: how often, what was left or lost, how long until the next token."""

    fault: str
    times: int = 0
    orphans: int = 0
    lost: int = 0
    late: int = 0
    again_s: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def sound(self) -> bool:
        return not (self.orphans or self.lost or self.late)


class Server:
    """A supervising process of its own over the fake engine, and what the drill knows of it."""

    def __init__(self, state_dir: Path, *knobs: str, env: dict[str, str] | None = None) -> None:
        self.state_dir, self.knobs = state_dir, knobs
        self.env = {**os.environ, **(env or {})}
        self.witness = Path(self.env.get("WITNESS") or state_dir.with_name(f"{state_dir.name}.witness"))
        self.child = self._begin()
        self.await_ready(1)

    def _begin(self) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "benchmarks.fault_drill", "--supervise", str(self.state_dir), "--", *self.knobs]
        with self.state_dir.with_name("stderr").open("ab") as said:
            return subprocess.Popen(argv, cwd=TOP, env=self.env, stdout=subprocess.DEVNULL, stderr=said)

    def begin_again(self) -> None:
        self.child.wait()
        self.child = self._begin()

    @property
    def record(self) -> ServerRecord:
        found = registry.read(self.state_dir, "fake")
        assert found is not None
        return found

    def witnessed(self) -> list[str]:
        return self.witness.read_text().split() if self.witness.exists() else []

    def journalled(self) -> list[str]:
        entries = read_journal(registry.directory(self.state_dir, "fake"))
        return [f"{entry.state}" for entry in entries if entry.what == "state"]

    def readies(self) -> int:
        return self.witnessed().count("ready")

    def await_ready(self, count: int, bound_s: float = START_S) -> float | None:
        """Seconds until it was ready for the `count`th time; None when that took too long."""
        began = time.monotonic()
        while self.readies() < count or self.record.state != "ready":
            if time.monotonic() - began > bound_s:
                return None
            time.sleep(0.01)
        return time.monotonic() - began

    def api(self) -> psutil.Process:
        return psutil.Process(self.record.engine_pid)

    def core(self) -> psutil.Process:
        return next(child for child in self.api().children() if "--be-core" in child.cmdline())

    def worker(self) -> psutil.Process:
        return self.core().children()[0]

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(60)

    def left(self) -> int:
        record = self.record
        return len(members(record.group, record.mark))

    def lost(self) -> int:
        """Witnessed states that the journal does not hold, in their order."""
        journal = iter(self.journalled())
        return sum(state not in journal for state in self.witnessed())


@contextmanager
def served(root: Path, *knobs: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    home = Path(tempfile.mkdtemp(dir=root))
    server = Server(home / "state", *knobs, env=env)
    try:
        yield server
    finally:
        server.end()


def repeat(row: Row, server: Server, times: int, fault: Callable[[Server], object]) -> Row:
    """The fault so many times, each on a server that serves; after each one its old processes are looked for."""
    try:
        for _ in range(times):
            before, count = server.record, server.readies()
            fault(server)
            again_s = server.await_ready(count + 1, BOUND_S)
            row.times += 1
            row.late += again_s is None
            row.again_s.append(again_s if again_s is not None else BOUND_S)
            row.orphans += len(members(before.group, before.mark))
            if again_s is None:
                break
    except KeyboardInterrupt:
        row.note = "interrupted"
    row.lost += server.lost()
    return row


def killed(fault: str, who: Callable[[Server], psutil.Process], number: int) -> Callable[[Path, int], Row]:
    def drill(root: Path, times: int) -> Row:
        with served(root, "--core", "--worker") as server:
            return repeat(Row(fault), server, times, lambda server: who(server).send_signal(number))

    return drill


def supervisor_killed(root: Path, times: int) -> Row:
    """All gone within a bound, then the same name started again; the journal goes on where it was."""
    row = Row("supervisor: SIGKILL")
    with served(root, "--core", "--worker") as server:
        for _ in range(times):
            before, count = server.record, server.readies()
            server.child.kill()
            began = time.monotonic()
            while members(before.group, before.mark) and time.monotonic() - began < ORPHAN_BOUND_S:
                time.sleep(0.02)
            row.orphans += len(members(before.group, before.mark))
            gone_s = time.monotonic() - began
            server.begin_again()
            again_s = server.await_ready(count + 1, BOUND_S)
            row.times += 1
            row.late += again_s is None
            row.again_s.append(again_s or BOUND_S)
            row.note = f"engine gone after at most {max(gone_s, float(row.note.split()[-2] if row.note else 0)):.1f} s"
        row.lost = server.lost()
    return row


def disk_full(root: Path, times: int) -> Row:
    """A small tmpfs filled to the last byte; the engine is killed meanwhile; then there is room again."""
    row = Row("disk full, API server SIGKILL")
    place = Path(tempfile.mkdtemp(dir=root))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        row.note = "not done: a tmpfs cannot be mounted here"
        return row
    try:
        server = Server(place / "state", "--core", "--worker", env={"WITNESS": str(root / "disk.witness")})
        for _ in range(times):
            before, count = server.record, server.readies()
            fill(place / "filler")
            server.api().kill()
            began = time.monotonic()
            while server.readies() <= count and time.monotonic() - began < BOUND_S:
                time.sleep(0.01)
            row.times += 1
            row.late += server.readies() <= count
            row.again_s.append(time.monotonic() - began)
            row.orphans += len(members(before.group, before.mark))
            (place / "filler").unlink()
            while server.record.engine_pid == before.engine_pid and time.monotonic() - began < BOUND_S:
                time.sleep(0.01)  # the record is written once there is room
        server.end()
        row.lost = server.lost()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
    return row


def fill(file: Path) -> None:
    with suppress(OSError), file.open("ab", buffering=0) as out:
        for size in (65536, 1):
            with suppress(OSError):
                while True:
                    out.write(b"x" * size)


def clock_step(root: Path, times: int) -> Row:
    """The wall clock of the supervisor and its engine jumps by up to ten years while the engine is killed."""
    row = Row("clock step, API server SIGKILL")
    shim, source, step = root / "clock.so", root / "clock.c", root / "step"
    source.write_text(CLOCK)
    step.write_text("0")
    compiler = shutil.which("cc")
    if compiler is None:
        row.note = "not done: no C compiler for the clock"
        return row
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    jumps = iter([3600, -3600, 86400, -86400, 10**7, -(10**7), 3 * 10**8, -(3 * 10**8), 0, 1] * 10)

    def fault(server: Server) -> None:
        step.write_text(str(next(jumps)))
        assert [found.name for found in registry.live(server.state_dir)] == ["fake"]  # a look does not take it for dead
        server.api().kill()

    with served(root, "--core", "--worker", env={"LD_PRELOAD": str(shim), "CLOCK_STEP": str(step)}) as server:
        return repeat(row, server, times, fault)


def full_pipe(root: Path, times: int) -> Row:
    """The supervisor stands still while a new engine prints 2 MB: the pipe is full and the engine waits for it."""

    def fault(server: Server) -> None:
        server.api().kill()
        time.sleep(0.05)
        server.child.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        server.child.send_signal(signal.SIGCONT)

    with served(root, "--core", "--spam", "2000000") as server:
        return repeat(Row("supervisor stopped, pipe full, API server SIGKILL"), server, times, fault)


def odd_output(fault: str, *knobs: str) -> Callable[[Path, int], Row]:
    def drill(root: Path, times: int) -> Row:
        with served(root, "--core", *knobs) as server:
            return repeat(Row(fault), server, times, lambda server: server.api().kill())

    return drill


def restarts(root: Path, times: int) -> Row:
    """One supervisor; each engine is killed as soon as it served."""
    with served(root) as server:
        row = repeat(Row("restarts of one server"), server, times, lambda server: server.api().kill())
        rss = psutil.Process(server.child.pid).memory_info().rss / 2**20
        files = psutil.Process(server.child.pid).num_fds()
        row.note = f"{row.note} afterwards {rss:.0f} MiB, {files} open files".strip()
        return row


DRILLS: dict[str, tuple[int, Callable[[Path, int], Row]]] = {
    "api": (30, killed("API server: SIGKILL", Server.api, signal.SIGKILL)),
    "core": (30, killed("EngineCore: SIGKILL", Server.core, signal.SIGKILL)),
    "worker": (30, killed("worker: SIGKILL", Server.worker, signal.SIGKILL)),
    "supervisor": (30, supervisor_killed),
    "guard": (20, killed("guard: SIGKILL", lambda server: psutil.Process(server.record.group), signal.SIGKILL)),
    "api-stopped": (10, killed("API server: SIGSTOP", Server.api, signal.SIGSTOP)),
    "core-stopped": (10, killed("EngineCore: SIGSTOP", Server.core, signal.SIGSTOP)),
    "disk": (10, disk_full),
    "clock": (10, clock_step),
    "pipe": (10, full_pipe),
    "long-line": (5, odd_output("log line of 10 MB, API server SIGKILL", "--long-line", "10000000")),
    "nul": (5, odd_output("NUL bytes in the log, API server SIGKILL", "--nul")),
    "restarts": (1000, restarts),
}


def supervise_here(state_dir: Path, knobs: list[str]) -> int:
    """The supervising process; the witness is written after the journal."""
    witness = Path(os.environ.get("WITNESS") or state_dir.with_name(f"{state_dir.name}.witness"))

    def told(event: Event) -> None:
        if isinstance(event, StateChanged):
            with witness.open("a") as out:
                out.write(f"{event.state}\n")

    callbacks = Callbacks(observer=told, diagnose=lambda failed: Diagnosis(errors=failed.errors, permanent=False))
    with stop_on_signals() as stop, registry.claimed(state_dir, registry.Wish(model="fake", name="fake")) as record:
        launch = spec(state_dir, *knobs, name=record.name, port=record.port, limits=LIMITS, pace=PACE)
        return int(supervise(launch, stop, callbacks).failed)


def table(rows: list[Row]) -> str:
    lines = [
        "| fault | times | left over | journal entries lost | late | serving again, median | longest | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        times = sorted(row.again_s)
        median, longest = (f"{times[len(times) // 2]:.2f} s", f"{times[-1]:.2f} s") if times else ("-", "-")
        cells = (row.fault, row.times, row.orphans, row.lost, row.late, median, longest, row.note)
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--restarts", type=int, default=1000)
    parser.add_argument("--only", choices=DRILLS, action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--supervise", type=Path)
    parser.add_argument("knobs", nargs="*")
    told = parser.parse_args()
    if told.supervise:
        return supervise_here(told.supervise, told.knobs)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started it in the background
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as root:
        for name, (times, drill) in DRILLS.items():
            if told.only and name not in told.only:
                continue
            began = time.monotonic()
            count = told.restarts if name == "restarts" else max(1, round(times * told.share))
            rows.append(drill(Path(root), count))
            print(f"{name}: {rows[-1].times} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if told.json:
        told.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(not all(row.sound for row in rows))


if __name__ == "__main__":
    sys.exit(main())
