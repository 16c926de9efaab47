"""Whether lint names the right cause of public failures: the records listed in data/lintable.csv.

Usage: python benchmarks/lint_recall.py [FAILURES] [--json]
FAILURES is the file of records (default ../shared/failures/failures.jsonl); it is no part of the project. The right
cause of each record was written down before any rule. Goals: 90% of the records that command, version and model
decide, and a median of at most 2 findings a record. Records whose launch was rebuilt (tag launch-inferred) apart.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lint_false_alarms import model_of

from trimtab.errors import UsageError
from trimtab.facts.gpu import GpuSet, parse_gpus
from trimtab.rules.lint import LintFacts, lint
from trimtab.rules.rule import Severity
from trimtab.rules.runner import Reported

ROOT = Path(__file__).parents[1]
LINTABLE = ROOT / "benchmarks" / "data" / "lintable.csv"
FAILURES = ROOT.parent / "shared" / "failures" / "failures.jsonl"
GOAL = 0.90
ALIASES: dict[str, set[str]] = {"tensor-parallel-above-gpu-count": {"more-ranks-than-gpus"}}
"""Cause in lintable.csv -> names of rules that mean the same."""


@dataclass(frozen=True)
class Record:
    """One failure: what lint said, against the cause written down."""

    id: str
    decided_by: str
    cause: str
    inferred: bool
    findings: tuple[Reported, ...]
    commands: int

    @property
    def named(self) -> bool:
        """Whether a finding at or above a warning names the cause."""
        names = {self.cause, *ALIASES.get(self.cause, ())}
        return any(f.rule.name in names and f.severity is not Severity.INFO for f in self.findings)


def version_of(text: str) -> str | None:
    """The first release that the record names: "0.6" of "0.6.x", "0.13" of "0.13/0.14"; None of none."""
    found = re.match(r"v?(\d+\.\d+)(?![\dx])((?:\.\d+)*(?:\.post\d+)?)", text or "")
    return found[1] + found[2] if found else None


def gpus_of(hardware: str | None) -> GpuSet | None:
    """The cards, where the record's words name some that can be read; what follows a comma is often a remark."""
    for words in (hardware or "", (hardware or "").partition(",")[0]):
        with suppress(UsageError):
            return parse_gpus(words)
    return None


def judge(row: dict[str, str], failure: dict[str, Any]) -> Record:
    """Lint the record's launch with the facts that the record gives."""
    facts = LintFacts(vllm=version_of(failure["vllm_version"]), gpus=gpus_of(failure["hardware"]), model_of=model_of)
    linted = lint(failure["launch"], facts=facts)
    inferred = "launch-inferred" in failure["tags"]
    return Record(row["id"], row["decided_by"], row["cause"], inferred, linted.report.findings, len(linted.commands))


def records(failures: Path) -> list[Record]:
    """Every listed record that has a launch."""
    by_id = {f["id"]: f for f in map(json.loads, failures.read_text(encoding="utf-8").splitlines())}
    with LINTABLE.open(encoding="utf-8", newline="") as stream:
        return [judge(row, by_id[row["id"]]) for row in csv.DictReader(stream) if by_id[row["id"]]["launch"]]


def share(found: Iterable[Record]) -> dict[str, Any]:
    """How many, of how many, and which not."""
    rows = list(found)
    named = [r for r in rows if r.named]
    missed = [f"{r.id} {r.cause}" for r in rows if not r.named]
    return {
        "named": len(named),
        "of": len(rows),
        "share": round(len(named) / len(rows), 3) if rows else None,
        "missed": missed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("failures", type=Path, nargs="?", default=FAILURES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = records(options.failures)
    given = [r for r in rows if not r.inferred]
    figures: dict[str, Any] = {
        decided: share(r for r in given if r.decided_by == decided) for decided in Counter(r.decided_by for r in given)
    }
    figures["launch-inferred"] = share(r for r in rows if r.inferred)
    counts = [sum(f.severity is not Severity.INFO for f in r.findings) for r in rows]
    figures["findings"] = {"median": statistics.median(counts), "most": max(counts)}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        for decided, value in figures.items():
            print(f"{decided:16} " + " ".join(f"{k} {v}" for k, v in value.items() if k != "missed"))
            for missed in value.get("missed", ()):
                said = next(r for r in rows if r.id == missed.split()[0])
                print(f"    missed {missed}; said: {', '.join(f.rule.name for f in said.findings) or '-'}")
    return 0 if figures["command"]["share"] >= GOAL and figures["findings"]["median"] <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
