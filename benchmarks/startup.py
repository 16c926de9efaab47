"""Time of whole commands from process start to exit, wall and CPU: medians and spread over repeated runs.

Usage: python benchmarks/startup.py [--runs 20] [--json] [case ...]; the targets stand in CASES, in ms of wall time.
CPU time (user and system) tells what a command costs where other work delays it; its least is the steadiest figure.
The doctor's cases: a start that went well, one that served, and two failures whose fix the linter and the memory model
check.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

TRIMTAB = Path(sys.executable).with_name("trimtab")
MODEL = "Qwen/Qwen2.5-72B-Instruct"
LOGS = Path(__file__).parents[1] / "tests"
CASES: dict[str, tuple[int, list[str]]] = {
    "version": (150, ["--version"]),
    "lint": (250, ["lint", "vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4", "--vllm", "0.26"]),
    "plan": (400, ["plan", MODEL, "--gpu", "8xA10", "--context", "32768", "--concurrency", "2"]),
    "plan-largest": (400, ["plan", "deepseek-ai/DeepSeek-R1", "--gpu", "16xH100", "--prefer", "throughput"]),
    "plan-nothing": (400, ["plan", MODEL, "--gpu", "4xA10", "--context", "32768", "--concurrency", "16"]),
    "plan-any": (2000, ["plan", MODEL, "--gpu", "any", "--context", "32768", "--concurrency", "16"]),
    "budget": (400, ["budget", "--gpu", "8xA10", "--", "vllm", "serve", MODEL, "-tp", "8"]),
    "doctor-well": (300, ["doctor", str(LOGS / "engine/logs/cpu-0.32-eager.log")]),
    "doctor-served": (300, ["doctor", str(LOGS / "fixtures/logs/h200-starts/oss-graph-s256.log")]),
    "doctor-fix": (300, ["doctor", str(LOGS / "engine/logs/h200-0.26-q72-oom.log")]),
    "doctor-graphs": (300, ["doctor", str(LOGS / "fixtures/logs/h200-ends/oom-graphs.log")]),
}


class Times(NamedTuple):
    """Sorted milliseconds of each run."""

    wall: list[float]
    cpu: list[float]


def measure(arguments: list[str], runs: int) -> Times:
    """Run the command `runs` times, after one to warm the file cache. Exit codes 0 and 1 are both answers."""
    environ = dict(os.environ)
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the warming run leaves compiled modules, as an install does
    wall, cpu = [], []
    for _ in range(runs + 1):
        start, used = time.perf_counter(), _cpu_s()
        done = subprocess.run([TRIMTAB, *arguments], capture_output=True, text=True, check=False, env=environ)
        wall.append((time.perf_counter() - start) * 1000)
        cpu.append((_cpu_s() - used) * 1000)
        if done.returncode not in (0, 1):
            raise SystemExit(f"trimtab {' '.join(arguments)} failed ({done.returncode}): {done.stderr}")
    return Times(sorted(wall[1:]), sorted(cpu[1:]))


def _cpu_s() -> float:
    """Seconds of user and system time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spread(times: list[float]) -> dict[str, float]:
    """Median, ninth tenth and least of sorted times."""
    ninth = times[min(len(times) * 9 // 10, len(times) - 1)]
    return {"median": round(statistics.median(times), 1), "p90": round(ninth, 1), "min": round(times[0], 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cases", nargs="*", default=[], help=f"of {', '.join(CASES)}")
    options = parser.parse_args()
    rows = []
    for name in options.cases or CASES:
        target, arguments = CASES[name]
        times = measure(arguments, options.runs)
        met = statistics.median(times.wall) <= target
        rows.append(
            {"command": name, "target_ms": target, "wall": spread(times.wall), "cpu": spread(times.cpu), "met": met}
        )
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    if options.json:
        print(json.dumps({"machine": machine, "runs": options.runs, "rows": rows}, indent=1))
    else:
        print(f"{machine}, {options.runs} runs each, ms: median, p90 (least)")
        for row in rows:
            wall, cpu = ("{median:6.1f}, {p90:.1f} ({min:.1f})".format(**row[kind]) for kind in ("wall", "cpu"))
            verdict = "met" if row["met"] else "MISSED"
            print(f"{row['command']:13} wall {wall:22} cpu {cpu:22} target {row['target_ms']} wall: {verdict}")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
