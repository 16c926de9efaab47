"""Whether the doctor names the right cause of public failures: the records listed in data/causes.jsonl.

Usage: python benchmarks/doctor.py [FAILURES] [--json]
FAILURES is the file of records (default ../shared/failures/failures.jsonl); it is no part of the project. The cause of
each record was written down before any rule. A record's signature and context lines are given to the doctor as a log
of a few lines, after the line by which vLLM tells the stage that the record names (a client's tells none). Goals: the
right cause first in 85% of the records, among the first three in 95%. Records whose fix somebody confirmed are counted
apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from trimtab.engine.logs import read_log
from trimtab.rules.doctor import diagnose

ROOT = Path(__file__).parents[1]
CAUSES = ROOT / "benchmarks" / "data" / "causes.jsonl"
FAILURES = ROOT.parent / "shared" / "failures" / "failures.jsonl"
FIRST_GOAL, THREE_GOAL = 0.85, 0.95
STAGES = {
    "load": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model...",
    "profile": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Model loading took 10.0000 GiB and 10.000000 seconds",
    "graph": "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Capturing the model for CUDA graphs.",
    "serve": "INFO:     Application startup complete.",
}
"""Stage of a record -> the line by which vLLM tells that it got there."""


class Judged(msgspec.Struct, frozen=True):
    """A record: the causes that are right, and those that the doctor names, likeliest first."""

    id: str
    stage: str
    right: tuple[str, ...]
    confirmed: bool
    named: tuple[str, ...]
    codes: tuple[str, ...]
    text: str

    def within(self, places: int) -> bool:
        """Whether a right cause is among the first `places`."""
        return any(cause in self.right for cause in self.named[:places])


def judge(truth: dict[str, Any], failure: dict[str, Any]) -> Judged:
    """The doctor's word on one record."""
    said = [failure["signature"], *failure["context_lines"]]
    lines = [STAGES[failure["stage"]]] if failure["stage"] in STAGES else []
    text = "\n".join([*lines, *said]) + "\n"
    found = diagnose(read_log([text.encode()])).report.findings
    causes = dict.fromkeys(f.rule.cause.value for f in found if f.rule.cause is not None)
    return Judged(
        id=truth["id"],
        stage=failure["stage"],
        right=(truth["cause"], *truth.get("also", ())),
        confirmed=truth["confirmed"],
        named=tuple(causes),
        codes=tuple(f.rule.code for f in found),
        text=" | ".join(said),
    )


def records(failures: Path) -> list[Judged]:
    """Every record that has a cause written down."""
    by_id = {f["id"]: f for f in map(json.loads, failures.read_text(encoding="utf-8").splitlines())}
    truths = map(json.loads, CAUSES.read_text(encoding="utf-8").splitlines())
    return [judge(truth, by_id[truth["id"]]) for truth in truths]


def share(rows: list[Judged]) -> dict[str, Any]:
    """How many have the right cause first and among the first three."""
    count = len(rows)
    first, three = sum(r.within(1) for r in rows), sum(r.within(3) for r in rows)
    return (
        {"of": count, "first": round(first / count, 3), "among_three": round(three / count, 3)} if count else {"of": 0}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("failures", type=Path, nargs="?", default=FAILURES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = records(options.failures)
    figures: dict[str, Any] = {
        "all": share(rows),
        "confirmed": share([r for r in rows if r.confirmed]),
        "unconfirmed": share([r for r in rows if not r.confirmed]),
        "server": share([r for r in rows if r.stage != "client"]),
        "client": share([r for r in rows if r.stage == "client"]),
    }
    missed = [r for r in rows if not r.within(1)]
    if options.json:
        figures["missed"] = [{"id": r.id, "right": r.right, "named": r.named} for r in missed]
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name:12} " + " ".join(f"{k} {v}" for k, v in value.items()))
        for r in missed:
            place = "three" if r.within(3) else "none"
            print(f"    {place:5} {r.id} {r.stage} {'/'.join(r.right)}; named: {', '.join(r.named) or '-'}\n"
                  f"          {r.text[:200]}")  # fmt: skip
    reached = figures["all"]["first"] >= FIRST_GOAL and figures["all"]["among_three"] >= THREE_GOAL
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
