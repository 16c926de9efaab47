"""The load client and what a measured moment says: requests, times, CPU of a process group and of everyone else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil

HERE = Path(__file__).parent
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
CLIENT_CORE, GATEWAY_CORE = 0, 1


class Cell(NamedTuple):
    """What is asked: `mode` plain, stream or hold; `rate` requests a second, 0 for one after the other."""

    name: str
    mode: str
    connections: int
    rate: float = 0.0
    chunks: int = 64
    every_us: int = 5000


CELLS = {
    cell.name: cell
    for cell in (
        Cell("plain:1", "plain", 1),
        Cell("plain:16", "plain", 16),
        Cell("plain:64", "plain", 64),
        Cell("rate:16", "plain", 16, rate=5000),
        Cell("stream:64", "stream", 64),
        Cell("open:1000", "hold", 1000, chunks=8, every_us=1_000_000),
    )
}


def compiled(name: str) -> Path:
    """The program of `name`.c, compiled anew when its text changes. Needs gcc."""
    source = HERE / f"{name}.c"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("no C compiler: apt-get install gcc libc6-dev")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    made = Path(tempfile.gettempdir()) / f"trimtab-bench-{os.getuid()}" / f"{name}-{digest}"
    if not made.exists():
        made.parent.mkdir(mode=0o700, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", made, source], check=True)
    return made


def on_core(core: int, command: list[str]) -> list[str]:
    """The command held to one core."""
    return ["taskset", "-c", str(core), *command]


def group_of(pid: int) -> list[psutil.Process]:
    """The process and all that it started."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_s(pids: list[int]) -> float:
    """User and system seconds so far, of all threads of these processes (proc(5): utime and stime)."""
    total = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total * TICK_S


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident and proportional set of the process group, MB."""
    infos = [process.memory_full_info() for process in group_of(pid)]
    return sum(i.rss for i in infos) / 1e6, sum(i.pss for i in infos) / 1e6


def busy_s() -> float:
    """Seconds that all cores together worked so far."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


class Load:
    """A client under way, on its core."""

    def __init__(self, port: int, cell: Cell, *, key: str, warm_s: float, seconds: float, model: str = "bench") -> None:
        given = (port, cell.mode, cell.connections, warm_s, seconds, model, key, cell.rate, cell.chunks, cell.every_us)
        command = on_core(CLIENT_CORE, [str(compiled("client")), *map(str, given)])
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._last = ""

    @property
    def pid(self) -> int:
        """The client's process."""
        return self._process.pid

    def wait_for(self, word: str) -> bool:
        """Read up to the line that begins with `word`; False when the client ended without it."""
        return any(line.startswith(word) for line in self._lines())

    def result(self) -> dict[str, Any]:
        """The client's own figures, at its end."""
        for _ in self._lines():
            pass
        if self._process.wait() != 0 or not self._last.startswith("{"):
            raise RuntimeError(f"the load client failed ({self._process.returncode}): {self._last}")
        found: dict[str, Any] = json.loads(self._last)
        return found

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._last = line
            yield line


def measure(
    port: int, pid: int, back_end: int, cell: Cell, *, key: str, warm_s: float, seconds: float
) -> dict[str, Any]:
    """One moment of load on the server at `port`, whose process group begins with `pid` (0: there is none)."""
    load = Load(port, cell, key=key, warm_s=warm_s, seconds=seconds)
    memory = None
    if cell.mode == "hold":
        if load.wait_for("open") and pid:
            memory = memory_mb(pid)
        return {**load.result(), "rss_mb": memory and memory[0], "pss_mb": memory and memory[1]}
    load.wait_for("begin")
    group = [process.pid for process in group_of(pid)] if pid else []
    ours = [*group, load.pid, back_end]
    before, all_before, busy = cpu_s(group), cpu_s(ours), busy_s()
    load.wait_for("end")
    used, all_used, worked = cpu_s(group) - before, cpu_s(ours) - all_before, busy_s() - busy
    found = load.result()
    return {**found, "cpu_s": used, "others": max(0.0, worked - all_used) / found["seconds"]}
