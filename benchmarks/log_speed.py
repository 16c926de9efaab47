"""How fast the doctor reads: a gigabyte of a serving engine's log, in how much memory.

Usage: python benchmarks/log_speed.py [--json] [--gib N]
Four forms: as vLLM writes it, as kubectl hands it on, one where every hundredth line is a warning, and one of nothing
but tracebacks. A start stands first and an out-of-memory in service last. Goals: 1 GB within 15 s and 256 MiB. On a
machine that does other things too, the processor's seconds tell what the clock hides. What `trimtab doctor` takes of a
normal log, its start included, `startup.py` measures.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from trimtab.engine.logs import read_log
from trimtab.rules.doctor import diagnose

ROOT = Path(__file__).parents[1]
START = (ROOT / "tests" / "engine" / "logs" / "cpu-0.32-eager.log").read_bytes()
END = b"""(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330]   File "vllm/v1/worker/gpu_worker.py", line 1, in execute_model
(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate \
2.00 GiB. GPU 0 has a total capacity of 23.58 GiB of which 1.20 GiB is free.
"""
GOAL_S, GOAL_MIB = 15.0, 256
CHUNK = 1 << 20


def ordinary(seed: int, warnings: bool) -> bytes:
    """A megabyte of lines of a serving engine: requests answered, and every tenth line its throughput."""
    rng = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < CHUNK:
        if warnings and rng.random() < 0.01:
            lines.append(
                "(APIServer pid=41) WARNING 11-30 12:00:00 [protocol.py:82] The following fields were present in the "
                f"request but ignored: {{'field_{rng.randrange(5)}'}}"
            )
        elif rng.random() < 0.1:
            lines.append(
                "(APIServer pid=41) INFO 11-30 12:00:00 [loggers.py:257] Engine 000: Avg prompt throughput: "
                f"{rng.random() * 9999:.1f} tokens/s, Avg generation throughput: {rng.random() * 999:.1f} tokens/s, "
                f"Running: {rng.randrange(64)} reqs, Waiting: 0 reqs, GPU KV cache usage: {rng.random() * 100:.1f}%"
            )
        else:
            lines.append(
                f'(APIServer pid=41) INFO:     10.0.0.{rng.randrange(255)}:{rng.randrange(1024, 65535)} - "POST '
                '/v1/chat/completions HTTP/1.1" 200 OK'
            )
        size += len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


def plain(chunk: bytes) -> bytes:
    return chunk


def kubectl(chunk: bytes) -> bytes:
    """Every line with a timestamp before it."""
    return b"".join(b"2026-11-30T12:00:00.123456789Z " + line + b"\n" for line in chunk.splitlines())


def odd(chunk: bytes) -> bytes:
    """In place of the lines as many tracebacks of requests that failed, as a client in a loop makes them."""
    begin = b"(EngineCore pid=7) ERROR 11-30 12:00:00 [core.py:1330] "
    frames = b"".join(
        begin + line + b"\n"
        for line in (
            b"Traceback (most recent call last):",
            b'  File "vllm/v1/engine/core.py", line 1330, in run_busy_loop',
            b'  File "vllm/v1/worker/gpu_worker.py", line 1, in execute_model',
        )
    )
    ends = (begin + b"ValueError: request chatcmpl-%08x is odd\n" % n for n in range(len(chunk)))
    made = b""
    while len(made) < len(chunk):
        made += frames + next(ends)
    return made


FORMS: dict[str, tuple[bool, Callable[[bytes], bytes]]] = {
    "plain": (False, plain),
    "kubectl": (False, kubectl),
    "warnings": (True, plain),
    "errors": (False, odd),
}


def stream(form: str, size: int) -> Iterator[bytes]:
    """A log of about `size` bytes in chunks; eight different megabytes take turns."""
    warnings, wrap = FORMS[form]
    around = plain if wrap is odd else wrap
    chunks = [wrap(ordinary(seed, warnings)) for seed in range(8)]
    yield around(START)
    sent = 0
    while sent < size:
        chunk = chunks[sent // CHUNK % len(chunks)]
        sent += len(chunk)
        yield chunk
    yield around(END)


class Reading(NamedTuple):
    """Seconds to read and diagnose, by the clock and of the processor, most memory so far, what was named first."""

    seconds: float
    processor_s: float
    most_mib: int
    cause: str


def large(form: str, size: int) -> Reading:
    chunks = stream(form, size)
    first = next(chunks)  # the chunks are made here, before the clock starts

    def rest() -> Iterator[bytes]:
        yield first
        yield from chunks

    began, worked = time.perf_counter(), time.process_time()
    cause = diagnose(read_log(rest())).cause
    seconds, processor_s = time.perf_counter() - began, time.process_time() - worked
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Reading(seconds, processor_s, most, cause.rule.name if cause else "-")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gib", type=float, default=1.0)
    options = parser.parse_args()
    size = int(options.gib * (1 << 30))
    figures = {form: large(form, size) for form in FORMS}
    if options.json:
        print(
            json.dumps({"bytes": size, "forms": {form: found._asdict() for form, found in figures.items()}}, indent=1)
        )
    else:
        for form, found in figures.items():
            print(
                f"{form:9} {size / 1e9:.2f} GB in {found.seconds:.1f} s ({found.processor_s:.1f} s of the processor), "
                f"{size / 1e6 / found.seconds:.0f} MB/s, at most {found.most_mib} MiB, names {found.cause}"
            )
    slow = any(found.seconds > GOAL_S * options.gib for found in figures.values())
    return int(slow or any(found.most_mib > GOAL_MIB for found in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
