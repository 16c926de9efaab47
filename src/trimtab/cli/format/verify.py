"""A verification as a table for people and as JSON, schema `trimtab.verify/2`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.bench.baseline import SCHEMA, Change, Saved, told, worse
from trimtab.bench.criterion import Criterion, Verdict
from trimtab.bench.verify import Capacity, Verification
from trimtab.messages import Message, msg

_WIDTH = 100
_WORDS: dict[Verdict, Message] = {
    "passed": msg("passed"),
    "failed": msg("FAILED"),
    "not_applicable": msg("not applicable"),
    "not_measured": msg("not judged"),
}


def verdict(passed: bool | None) -> Message:
    """A verdict in words; what was not judged is never shown as passed."""
    return msg("not judged") if passed is None else msg("passed") if passed else msg("FAILED")


def verdict_of(criterion: Criterion) -> Message:
    """The verdict of one criterion in words."""
    return _WORDS[criterion.verdict]


def progress_line(name: str, criterion: Criterion | None, lang: str) -> str:
    """One plain line for the begin (None) or the end of a criterion."""
    return f"{name} ..." if criterion is None else f"{name}: {verdict_of(criterion).text(lang)}"


def as_json(outcome: Verification, lang: str, changes: Sequence[Change] | None = None) -> str:
    """The report as JSON; evidence in `lang`, everything else the same in all languages."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "url": outcome.url,
        "model": outcome.model,
        "passed": outcome.passed,
        "interrupted": outcome.interrupted,
        "seconds": round(outcome.seconds, 3),
        "criteria": [_criterion(c, lang) for c in outcome.criteria],
        "capacity": outcome.capacity,
        "bounds": outcome.limits,
    }
    if changes is not None:
        value["against"] = {
            "worse": len(worse(changes)),
            "changes": [{**msgspec.to_builtins(c), "text": told(c).text(lang)} for c in changes],
        }
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _criterion(c: Criterion, lang: str) -> dict[str, Any]:
    return {
        "name": c.name,
        "verdict": c.verdict,
        "passed": c.passed,
        "seconds": c.seconds,
        "measured": dict(c.measured),
        "evidence": [e.text(lang) for e in c.evidence],
        "next": [e.text(lang) for e in c.next],
        "figures": c.figures,
        "series": dict(c.series),
    }


def as_text(
    outcome: Verification, lang: str, changes: Sequence[Change] | None = None, baselines: Sequence[Saved] = ()
) -> str:
    """The report as a table, then what the server says of its memory, then what changed, then the verdict."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in (msg("criterion"), msg("verdict"), msg("measured"), msg("evidence")):
        table.add_column(heading.text(lang), overflow="fold")
    for c in outcome.criteria:
        evidence = "\n".join([*(e.text(lang) for e in c.evidence), *(f"-> {step.text(lang)}" for step in c.next)])
        table.add_row(c.name, verdict_of(c).text(lang), Text(_measures(c.measured)), Text(evidence))
    out = io.StringIO()
    Console(file=out, width=_WIDTH, highlight=False, color_system=None).print(table)
    head = msg("{url}, model {model}", url=outcome.url, model=outcome.model).text(lang)
    tail = msg("{verdict} in {seconds:.1f} s", verdict=verdict(outcome.passed), seconds=outcome.seconds).text(lang)
    if outcome.interrupted:
        tail = f"{msg('interrupted: the verdicts are of what was done until then').text(lang)}\n{tail}"
    lines = [*capacity_lines(outcome.capacity), *change_lines(outcome, changes, baselines)]
    table_text = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return f"{head}\n{table_text}\n{''.join(f'{line.text(lang)}{chr(10)}' for line in lines)}{tail}"


def change_lines(
    outcome: Verification, changes: Sequence[Change] | None, baselines: Sequence[Saved] = ()
) -> list[Message]:
    """What is not as in the baseline, a sentence each; worse first."""
    if changes is None:
        return []
    lines = [
        msg("the baseline is of another model: {before}, not {now}", before=saved.model, now=outcome.model)
        for saved in baselines
        if saved.model != outcome.model
    ]
    lines += [told(c) for kind in ("worse", "better") for c in changes if c.outcome == kind]
    same = sum(c.outcome == "same" for c in changes)
    left = sum(c.outcome == "not compared" for c in changes)
    summed = msg("against the baseline: {worse} worse, {same} as before, {left} not compared",
                 worse=len(worse(changes)), same=same, left=left)  # fmt: skip
    return [*lines, summed]


def capacity_lines(capacity: Capacity) -> list[Message]:
    """What the server says of its memory, a sentence each."""
    lines: list[Message] = []
    if capacity.memory_utilization is not None:
        lines.append(msg("gpu_memory_utilization {value:g}", value=capacity.memory_utilization))
    if capacity.kv_tokens is not None:
        lines.append(
            msg(
                "KV cache: {tokens:,} tokens{blocks} (from its {source})",
                tokens=capacity.kv_tokens,
                blocks=msg(", {n:,} blocks", n=capacity.kv_blocks) if capacity.kv_blocks else "",
                source=capacity.source,
            )
        )
    elif capacity.kv_blocks is not None:
        lines.append(msg("KV cache: {n:,} blocks", n=capacity.kv_blocks))
    if capacity.requests is not None:
        lines.append(
            msg("holds {n:g} requests of {context:,} tokens", n=capacity.requests, context=capacity.context_tokens)
        )
    return lines


def _measures(measured: Mapping[str, object]) -> str:
    lines: list[str] = []
    for name, value in measured.items():
        if isinstance(value, Mapping):
            if value:
                lines.append(f"{name}: " + _measures(value).replace("\n", ", "))
        elif isinstance(value, list):
            rows = [_measures(item).replace("\n", ", ") for item in value if isinstance(item, Mapping)]
            lines += rows or [f"{name} " + ", ".join(str(item) for item in value)]
        elif value is not None:
            lines.append(f"{name} {value}")
    return "\n".join(lines)
