"""How often lint finds fault with commands that vLLM's own people published (data/known_good.jsonl).

Usage: python benchmarks/lint_false_alarms.py [--show CODE] [--all] [--json]
Goals: at most 2% of the commands with an error and 10% with a warning, those aside whose fault is proven: a row of
data/called_bad.csv names the command, the rule, and the file, version and line of vLLM that proves it.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from known_good import Known, known_good

from trimtab.engine.command import LaunchCommand
from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import ModelFacts
from trimtab.rules.lint import LintFacts, lint
from trimtab.rules.rule import Severity
from trimtab.rules.runner import Reported

CALLED_BAD = Path(__file__).parent / "data" / "called_bad.csv"
GOALS = {Severity.ERROR: 0.02, Severity.WARNING: 0.10}


@dataclass(frozen=True)
class Judged:
    """A command, what was found, and of which findings the fault is proven."""

    known: Known
    findings: tuple[Reported, ...]
    proven: frozenset[str]

    def has(self, severity: Severity, *, proven: bool) -> bool:
        """Whether there is a finding this severe; without `proven`, one that nothing proves."""
        return any(f.severity is severity and (proven or not {f.rule.code, "*"} & self.proven) for f in self.findings)


@cache
def facts_of(model: str | None) -> ModelFacts | None:
    """The catalogue's facts, as lint has them without a network."""
    if not model:
        return None
    try:
        return find_model(model).facts()
    except ModelError:
        return None


def model_of(command: LaunchCommand) -> ModelFacts | None:
    """Facts of the model that the command names."""
    return facts_of(command.get("model") or (command.model.text if command.model else None))


def judge(known: Known, proven: dict[str, set[str]]) -> Judged:
    """The command with its version, GPUs where named, and the model's facts where the catalogue has them."""
    gpus = parse_gpus(known.gpu) if known.gpu else None
    facts = LintFacts(vllm=known.vllm, gpus=gpus, model_of=model_of)
    found = lint(known.text, facts=facts).report.findings
    return Judged(known, found, frozenset(proven.get(known.id, ())))


def proofs() -> dict[str, set[str]]:
    """Record id -> codes of the rules whose finding is proven."""
    found: dict[str, set[str]] = {}
    with CALLED_BAD.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["id"], set()).add(row["code"])
    return found


def summary(rows: list[Judged]) -> dict[str, object]:
    """Counts and shares by severity, and findings by rule."""
    total = len(rows)
    figures: dict[str, object] = {
        "commands": total,
        "with_model_facts": sum(bool(facts_of(r.known.model)) for r in rows),
    }
    for severity, goal in GOALS.items():
        every = sum(r.has(severity, proven=True) for r in rows)
        alarms = sum(r.has(severity, proven=False) for r in rows)
        figures[severity] = {"with": every, "false": alarms, "share": round(alarms / total, 4), "goal": goal}
    codes = Counter((f.rule.code, f.rule.name, str(f.severity)) for r in rows for f in r.findings)
    figures["rules"] = [{"code": c, "name": n, "severity": s, "findings": k} for (c, n, s), k in codes.most_common()]
    return figures


def show(rows: list[Judged], wanted: str, *, proven: bool) -> None:
    """Print the findings of one rule or severity."""
    for row in rows:
        for found in row.findings:
            known = bool({found.rule.code, "*"} & row.proven)
            if wanted in (found.rule.code, found.rule.name, str(found.severity)) and (proven or not known):
                print(f"{row.known.id}  vLLM {row.known.vllm} ({row.known.vllm_from})")
                print(f"  {found.rule.code} {found.severity}: {found.message}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", help="print the findings of this rule that nothing proves")
    parser.add_argument("--all", action="store_true", help="with --show: the proven ones too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    proven = proofs()
    rows = [judge(known, proven) for known in known_good()]
    figures = summary(rows)
    if options.show:
        show(rows, options.show, proven=options.all)
    elif options.json:
        print(json.dumps(figures, indent=1))
    else:
        print(f"{figures['commands']} commands, the model of {figures['with_model_facts']} known")
        for severity in GOALS:
            print(f"{severity:8} {figures[severity]}")
        for rule in figures["rules"]:  # type: ignore[attr-defined]
            print("  {code} {name:48} {severity:8} {findings}".format(**rule))
    return 0 if all(figures[s]["share"] <= goal for s, goal in GOALS.items()) else 1  # type: ignore[index]


if __name__ == "__main__":
    sys.exit(main())
