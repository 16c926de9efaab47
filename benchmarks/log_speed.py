"""How fast the doctor is: a gigabyte of a serving engine's log, and a normal log with the program's start.

Usage: python benchmarks/log_speed.py [--json] [--gib N]
Three forms: as vLLM writes it, as kubectl hands it on, and one where every hundredth line is a warning. A start stands
first and an out-of-memory in service last. Goals: 1 GB within 15 s, a normal log within 300 ms (median of 9).
On a machine that does other things too, the processor's seconds tell what the clock hides.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trimtab.engine.logs import read_log
from trimtab.rules.doctor import diagnose

ROOT = Path(__file__).parents[1]
NORMAL = ROOT / "tests" / "engine" / "logs" / "h200-0.26-q72-oom.log"
START = (ROOT / "tests" / "engine" / "logs" / "cpu-0.32-eager.log").read_bytes()
END = b"""(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330]   File "vllm/v1/worker/gpu_worker.py", line 1, in execute_model
(EngineCore pid=7) ERROR 11-30 23:59:16 [core.py:1330] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate \
2.00 GiB. GPU 0 has a total capacity of 23.58 GiB of which 1.20 GiB is free.
"""
BYTES_GOAL_S, NORMAL_GOAL_S = 15.0, 0.3
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


FORMS: dict[str, tuple[bool, Callable[[bytes], bytes]]] = {
    "plain": (False, plain),
    "kubectl": (False, kubectl),
    "warnings": (True, plain),
}


def stream(form: str, size: int) -> Iterator[bytes]:
    """A log of about `size` bytes in chunks; eight different megabytes take turns."""
    warnings, wrap = FORMS[form]
    chunks = [wrap(ordinary(seed, warnings)) for seed in range(8)]
    yield wrap(START)
    sent = 0
    while sent < size:
        chunk = chunks[sent // CHUNK % len(chunks)]
        sent += len(chunk)
        yield chunk
    yield wrap(END)


def large(form: str, size: int) -> tuple[float, float, str]:
    """Seconds to read and diagnose, by the clock and of the processor, and what was named first."""
    chunks = stream(form, size)
    first = next(chunks)  # the chunks are made here, before the clock starts

    def rest() -> Iterator[bytes]:
        yield first
        yield from chunks

    began, worked = time.perf_counter(), time.process_time()
    found = diagnose(read_log(rest()))
    cause = found.cause
    return time.perf_counter() - began, time.process_time() - worked, cause.rule.name if cause else "-"


def normal() -> float:
    """Median seconds of `trimtab doctor` on a normal log, with the program's start."""
    command = [sys.executable, "-m", "trimtab", "doctor", str(NORMAL)]
    times = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gib", type=float, default=1.0)
    options = parser.parse_args()
    size = int(options.gib * (1 << 30))
    figures = {form: large(form, size) for form in FORMS}
    seconds = normal()
    if options.json:
        large_s = {
            form: {"seconds": round(s, 2), "processor_s": round(cpu, 2), "cause": cause}
            for form, (s, cpu, cause) in figures.items()
        }
        print(json.dumps({"bytes": size, "large": large_s, "normal_s": round(seconds, 3)}, indent=1))
    else:
        for form, (s, cpu, cause) in figures.items():
            rate = f"{size / 1e6 / s:.0f} MB/s"
            print(f"{form:9} {size / 1e9:.2f} GB in {s:.1f} s ({cpu:.1f} s of the processor), {rate}, names {cause}")
        print(f"normal log {seconds * 1000:.0f} ms with the program's start")
    slow = max(s for s, _, _ in figures.values()) > BYTES_GOAL_S * options.gib or seconds > NORMAL_GOAL_S
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
