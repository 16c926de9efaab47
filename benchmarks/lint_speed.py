"""How fast lint is: one command as a process from start to exit, and a thousand commands in one process.

Usage: python benchmarks/lint_speed.py [--runs 15] [--json]
Targets: a median under 250 ms for one command, 5 s for a thousand (from data/known_good.jsonl).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

from known_good import known_good
from lint_false_alarms import judge
from startup import measure

ONE_MS, THOUSAND_S = 250, 5.0
COMMAND = ["lint", "vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4", "--vllm", "0.26"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the warming run leaves compiled modules, as an install does
    times = measure(COMMAND, options.runs)
    commands = known_good()[:1000]
    start = time.perf_counter()
    for known in commands:
        judge(known, {})
    thousand = time.perf_counter() - start
    figures = {
        "one_ms": {"median": round(statistics.median(times), 1), "min": round(times[0], 1), "max": round(times[-1], 1)},
        "commands": len(commands),
        "thousand_s": round(thousand, 2),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures, indent=1) if options.json else figures)
    return 0 if statistics.median(times) < ONE_MS and thousand < THOUSAND_S else 1


if __name__ == "__main__":
    sys.exit(main())
