"""Verdicts on launches made up from failure reports, start logs and records: which start, and what stops the others.

Usage: python benchmarks/memory_launches.py

`data/launches.csv` holds launches of reports and logs. Each successful record whose tokens are known gives three more:
a context of 95% and of 105% of those tokens (starts; does not), and a utilization that leaves less than its weights.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memory_cases import Case, predict, reasons, records
from msgspec.structs import replace

from trimtab.plan.memory import budget

DATA = Path(__file__).parent / "data"
STARTS = ("fits", "unsafe_headroom")


def main() -> None:
    told = list(reported())
    cases, _ = predict(list(records()), reasons("excluded.csv"))
    made = [flip for case in cases for flip in flips(case)]
    for title, found in (("reports and logs", told), ("records with another flag", made)):
        right = sum(a == b or (a in STARTS and b == "fits") for _, a, b in found)
        bad = sum(a == "fits" and b != "fits" for _, a, b in found)
        kinds = dict(Counter(b for *_, b in found))
        print(f"{title}: {right} of {len(found)} right; {bad} that fail are called fits; {kinds}")
        for what, verdict, seen in found:
            if verdict != seen and not (verdict in STARTS and seen == "fits"):
                print(f"  {verdict}, was {seen}: {what}")


def reported() -> Iterator[tuple[str, str, str]]:
    """What `trimtab budget` says of each launch, and what was seen."""
    with (DATA / "launches.csv").open() as stream:
        for row in csv.DictReader(stream):
            line = [
                sys.executable,
                "-m",
                "trimtab",
                "budget",
                "--json",
                "--gpu",
                row["gpu"],
                "--vllm",
                row["vllm"],
                "--",
            ]
            done = subprocess.run([*line, *row["command"].split()], capture_output=True, text=True, check=False)
            verdict = json.loads(done.stdout)["verdict"] if done.stdout else done.stderr.splitlines()[0]
            yield f"{row['vllm']} on {row['gpu']}: {row['command']}", verdict, row["verdict"]


def flips(case: Case) -> Iterator[tuple[str, str, str]]:
    """Launches that differ from a successful record by one flag; only where nothing else changes with it (V1)."""
    settings, seen = case.budget.settings, case.row["observed"]
    if seen["startup_error"] or settings.engine != "V1" or settings.kv_cache_memory_bytes is not None:
        return
    tokens, held = seen["kv_cache_tokens"], seen["weights_gib_per_gpu"]
    windows = any(c.cache.kind != "full" for c in case.budget.layout.caches)
    if tokens and not windows:
        for share, verdict in ((0.95, "fits"), (1.05, "kv_too_small_for_max_len")):
            length = int(tokens * share)
            yield f"{case.row['id']} with {length:,} tokens", judged(case, max_model_len=length), verdict
    if held:
        share = (held - 0.2) / case.budget.cards[0].total_gib
        yield f"{case.row['id']} at {share:.3f}", judged(case, gpu_memory_utilization=share), "no_kv_blocks"


def judged(case: Case, **flags: float) -> str:
    settings = replace(case.budget.settings, **flags)
    return budget(settings, case.budget.model, case.budget.cards).verdict


if __name__ == "__main__":
    main()
