"""Wall time of whole commands from process start to exit: medians and spread over repeated runs.

Usage: python benchmarks/startup.py [--runs 15] [--json] [case ...]; the targets stand in CASES, in ms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

TRIMTAB = Path(sys.executable).with_name("trimtab")
MODEL = "Qwen/Qwen2.5-72B-Instruct"
CASES: dict[str, tuple[int, list[str]]] = {
    "version": (150, ["--version"]),
    "plan": (400, ["plan", MODEL, "--gpu", "8xA10", "--context", "32768", "--concurrency", "2"]),
    "lint": (250, ["lint", "vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4", "--vllm", "0.26"]),
    "budget": (400, ["budget", "--gpu", "8xA10", "--", "vllm", "serve", MODEL, "-tp", "8"]),
}


def measure(arguments: list[str], runs: int) -> list[float]:
    """Milliseconds of each of `runs` runs, after one to warm the file cache. Exit codes 0 and 1 are both answers."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        done = subprocess.run([str(TRIMTAB), *arguments], capture_output=True, text=True, check=False)
        times.append((time.perf_counter() - start) * 1000)
        if done.returncode not in (0, 1):
            raise SystemExit(f"trimtab {' '.join(arguments)} failed ({done.returncode}): {done.stderr}")
    return sorted(times[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cases", nargs="*", default=[], help=f"of {', '.join(CASES)}")
    options = parser.parse_args()
    rows = []
    for name in options.cases or CASES:
        target, arguments = CASES[name]
        times = measure(arguments, options.runs)
        rows.append(
            {
                "command": name,
                "target_ms": target,
                "median_ms": round(statistics.median(times), 1),
                "min_ms": round(times[0], 1),
                "max_ms": round(times[-1], 1),
                "met": statistics.median(times) <= target,
            }
        )
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    if options.json:
        print(json.dumps({"machine": machine, "runs": options.runs, "rows": rows}, indent=1))
    else:
        print(f"{machine}, {options.runs} runs each")
        for row in rows:
            verdict = "met" if row["met"] else "MISSED"
            times = "median {median_ms:6.1f}  min {min_ms:6.1f}  max {max_ms:6.1f}".format(**row)
            print(f"{row['command']:8} target {row['target_ms']:4} ms  {times}  {verdict}")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
