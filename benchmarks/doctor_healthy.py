"""Whether the doctor leaves healthy logs alone: real ones, and mutations of them.

Usage: python benchmarks/doctor_healthy.py [DIRECTORY ...] [--json] [--mutations N] [--seed N]
Directories hold logs (default: those of the tests, and ../shared/logs/h200). An index.jsonl beside them says by `kind`
which are healthy; without one, files whose name tells a failure are passed over. A mutation inserts ordinary warnings
of vLLM (data/ordinary_warnings.tsv: version, file, text), lets two workers write at once, or cuts lines out or off.
Goal: no finding of the severity error in any of them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trimtab.engine.logs import read_log
from trimtab.rules.doctor import diagnose
from trimtab.rules.rule import Severity

ROOT = Path(__file__).parents[1]
PLACES = (
    ROOT / "tests" / "engine" / "logs",
    ROOT / "tests" / "fixtures" / "logs",
    ROOT.parent / "shared" / "logs" / "h200",
)
FAILED = ("oom", "absent", "too-", "unknown", "fail")
"""Parts of the names of logs that tell a failure."""
WARNINGS = ROOT / "benchmarks" / "data" / "ordinary_warnings.tsv"
Mutation = Callable[[list[str], random.Random], list[str]]


def warned(lines: list[str], rng: random.Random) -> list[str]:
    """Between 1 and 12 ordinary warnings at any place."""
    texts = [row.split("\t") for row in WARNINGS.read_text(encoding="utf-8").splitlines()]
    mutated = list(lines)
    for _ in range(rng.randint(1, 12)):
        _, file, text = rng.choice(texts)
        prefix = rng.choice(("", "(EngineCore pid=4242) ", "(APIServer pid=4141) ", "(Worker_TP1 pid=4343) "))
        mutated.insert(rng.randrange(len(mutated) + 1), f"{prefix}WARNING 11-30 03:43:16 [{file}:12] {text}")
    return mutated


def interleaved(lines: list[str], rng: random.Random) -> list[str]:
    """A second worker that tells the same a little later."""
    second = [line.replace("(EngineCore pid=", "(Worker_TP1 pid=9") for line in lines if line.startswith("(EngineCore")]
    mutated = list(lines)
    at = 0
    for line in second:
        at = min(rng.randint(at, at + 3), len(mutated))
        mutated.insert(at, line)
    return mutated


def cut(lines: list[str], rng: random.Random) -> list[str]:
    """Some lines are missing or end early, and the log stops somewhere."""
    kept = [line for line in lines if rng.random() > 0.1]
    shorter = [line[: rng.randint(0, len(line))] if rng.random() < 0.05 else line for line in kept]
    return shorter[: rng.randint(len(shorter) // 3, len(shorter))] if shorter else []


MUTATIONS: tuple[Mutation, ...] = (warned, interleaved, cut)


def healthy_logs(places: list[Path]) -> dict[str, list[str]]:
    """Name -> lines."""
    files = [file for place in places for file in sorted(place.rglob("*.log"))]
    chosen = [f for f in files if is_healthy(f)]
    return {f.name: f.read_text(encoding="utf-8", errors="replace").split("\n") for f in chosen}


def is_healthy(file: Path) -> bool:
    """What the index beside it says of the log, else what its name does."""
    index = file.with_name("index.jsonl")
    if index.exists():
        rows = map(json.loads, index.read_text(encoding="utf-8").splitlines())
        return any(row["kind"] == file.stem and row["healthy"] for row in rows)
    return not any(part in file.name for part in FAILED)


def errors(lines: list[str]) -> list[str]:
    """The findings of the severity error, as text."""
    found = diagnose(read_log(["\n".join(lines).encode()])).report.findings
    return [f"{f.rule.code} {f.rule.name}: {f.evidence[:1]}" for f in found if f.severity is Severity.ERROR]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", type=Path, nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mutations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    logs = healthy_logs(options.places or [p for p in PLACES if p.is_dir()])
    rng = random.Random(options.seed)
    false: dict[str, list[str]] = {name: found for name, lines in logs.items() if (found := errors(lines))}
    for number in range(options.mutations):
        name, mutation = rng.choice(sorted(logs)), rng.choice(MUTATIONS)
        mutated = mutation(logs[name], rng)
        if found := errors(mutated):
            false[f"{name} {mutation.__name__} {number}"] = found
    figures: dict[str, Any] = {"logs": len(logs), "mutations": options.mutations, "false": false}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        print(f"{len(logs)} healthy logs, {options.mutations} mutations: {len(false)} with an error that is none")
        for name, told in false.items():
            print(f"    {name}: {'; '.join(told)}")
    return int(bool(false))


if __name__ == "__main__":
    sys.exit(main())
