"""How fast lint is: one command as a process from start to exit, and a thousand commands in one process.

Usage: python benchmarks/lint_speed.py [--runs 20] [--json]
Targets, wall time: a median under 250 ms for one command, 5 s for a thousand (from data/known_good.jsonl). CPU time too
is told, since other work on the machine does not lengthen it as much.
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
from startup import CASES, measure, spread

THOUSAND_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    target, words = CASES["lint"]
    times = measure(words, options.runs)
    commands = known_good()[:1000]
    start, used = time.perf_counter(), time.process_time()
    for known in commands:
        judge(known, {})
    thousand, cpu = time.perf_counter() - start, time.process_time() - used
    figures = {
        "one_ms": {"wall": spread(times.wall), "cpu": spread(times.cpu)},
        "commands": len(commands),
        "all_s": {"wall": round(thousand, 2), "cpu": round(cpu, 2)},
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures, indent=1) if options.json else figures)
    return 0 if statistics.median(times.wall) < target and thousand < THOUSAND_S else 1


if __name__ == "__main__":
    sys.exit(main())
