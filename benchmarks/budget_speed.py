"""How fast a budget is: every model of the catalogue in one process, and one launch as a command from start to exit.

Usage: python benchmarks/budget_speed.py [--runs 20] [--json]
Targets: 5 ms for the slowest budget in process (flags resolved, budget made, CPU time), 400 ms wall for the command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence

from startup import CASES, measure, spread

from trimtab.facts.catalogue.lookup import entries, find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory import Card, Given, budget, cards_of, release, resolve

TARGET_MS = 5.0
LAUNCHES = (("0.9.2", "8xH100"), ("0.26", "8xH100"), ("0.33", "8xH100"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    took = sorted(in_process().items(), key=lambda pair: pair[1])
    spent = [ms for _, ms in took]
    target, words = CASES["budget"]
    times = measure(words, options.runs)
    figures = {
        "in_process_ms": {"budgets": len(spent), "median": round(statistics.median(spent), 2),
                          "p99": round(spent[int(0.99 * len(spent))], 2), "slowest": took[-1][0],
                          "most": round(spent[-1], 2)},
        "command_ms": {"wall": spread(times.wall), "cpu": spread(times.cpu)},
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    print(json.dumps(figures, indent=1) if options.json else figures)
    return 0 if spent[-1] < TARGET_MS and statistics.median(times.wall) < target else 1


def in_process() -> dict[str, float]:
    """CPU milliseconds of one budget of each model and release, the best of three, once its facts are read."""
    found: dict[str, float] = {}
    for entry in entries():
        model = find_model(entry.ids[0]).facts()
        for version, gpus in LAUNCHES:
            cards = cards_of(parse_gpus(gpus))
            given = Given({"tensor_parallel_size": 8, "max_model_len": 8192}, {}, "server")
            best = min(_once(given, version, model, cards) for _ in range(3))
            found[f"{entry.ids[0]} {version}"] = best
    return found


def _once(given: Given, version: str, model: ModelFacts, cards: Sequence[Card]) -> float:
    start = time.process_time()
    budget(resolve(given, release(version), model, cards), model, cards)
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    sys.exit(main())
