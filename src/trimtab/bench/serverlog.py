"""What a vLLM log says against its server (out of memory, a dead engine), and the size of its KV cache."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.engine.logs import Kind, parse_line

# PyTorch's wording (CUDA, HIP, XPU and the CPU allocator) and the kernel's.
_OUT_OF_MEMORY = re.compile(
    r"OutOfMemoryError|\b(?:CUDA|HIP|XPU|NPU)\b.{0,20}out of memory|DefaultCPUAllocator: (?:can't|not enough)"
    r"|Out of memory: Killed process|oom-kill|\bMemoryError\b|std::bad_alloc"
)
# vLLM 0.4 to 0.33: v1/engine/{core,core_client,exceptions}.py, v1/executor/multiproc_executor.py,
# engine/async_llm_engine.py, engine/multiprocessing/.
_ENGINE_DEAD = re.compile(
    r"EngineDeadError|EngineCore encountered|EngineCore failed to start|(?:Engine core|Worker) proc \S+ died"
    r"|Engine core initialization failed|Background loop has errored"
)
# A request's own words may stand in the log (--enable-log-requests); they are nobody's error.
_REQUEST = re.compile(r"Received request |Request \S+ details: ")
# Up to 0.10 a line, later the banner.
_START = re.compile(r"vLLM API server version \S|[█▄▀].*\bversion \d+\.\d+")
_UTILIZATION = re.compile(r"gpu[-_]memory[-_]utilization'?[=:\s]+([0-9.]+)")


@dataclass(frozen=True, slots=True)
class LogSource:
    """A server's log file; `from_byte` leaves out what an earlier start wrote into the same file."""

    path: Path
    from_byte: int = 0

    def read(self) -> list[str]:
        """Its lines; OSError when it cannot be read. Bytes that are no UTF-8 are replaced."""
        with self.path.open("rb") as file:
            file.seek(self.from_byte)
            return file.read().decode("utf-8", errors="replace").splitlines()


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that speaks against the server: its number in what was read, from 1, and its text."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class LogReading:
    """What was found in the log since the server's last start."""

    lines: int = 0
    out_of_memory: tuple[Finding, ...] = ()
    engine_dead: tuple[Finding, ...] = ()
    kv_tokens: int | None = None  # V0 states blocks and how many requests of a length fit: their product
    kv_blocks: int | None = None
    memory_utilization: float | None = None


@dataclass
class _Reading:
    out_of_memory: list[Finding] = field(default_factory=list)
    engine_dead: list[Finding] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    memory_utilization: float | None = None

    def take(self, number: int, line: str) -> None:
        if _OUT_OF_MEMORY.search(line):
            self.out_of_memory.append(Finding(number, line.strip()[:300]))
        elif _ENGINE_DEAD.search(line):
            self.engine_dead.append(Finding(number, line.strip()[:300]))
        event = parse_line(line)
        if event.kind in (Kind.KV_TOKENS, Kind.KV_BLOCKS, Kind.CONCURRENCY):
            self.numbers |= event.numbers
        if match := _UTILIZATION.search(line):
            self.memory_utilization = float(match[1].rstrip("."))


def read_log(lines: Iterable[str]) -> LogReading:
    """Read the lines of the last start of the server; all of them when no start is to be seen."""
    seen = list(lines)
    found = _Reading()
    for number, line in enumerate(seen, 1):
        if _START.search(line):
            found = _Reading()
        if not _REQUEST.search(line):
            found.take(number, line)
    tokens, blocks = found.numbers.get("kv_tokens"), found.numbers.get("kv_blocks")
    if tokens is None and "requests" in found.numbers:
        tokens = found.numbers["requests"] * found.numbers["context_tokens"]
    return LogReading(
        len(seen),
        tuple(found.out_of_memory),
        tuple(found.engine_dead),
        round(tokens) if tokens else None,
        round(blocks) if blocks else None,
        found.memory_utilization,
    )
