"""A verification as a table for people and as JSON, schema `trimtab.verify/1`."""

from __future__ import annotations

import io
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.bench.verify import Capacity, Criterion, Verification
from trimtab.messages import Message, msg

SCHEMA = "trimtab.verify/1"
_WIDTH = 100


def verdict(passed: bool | None) -> Message:
    """A verdict in words; what was not judged is never shown as passed."""
    return msg("not judged") if passed is None else msg("passed") if passed else msg("FAILED")


def progress_line(name: str, criterion: Criterion | None, lang: str) -> str:
    """One plain line for the begin (None) or the end of a criterion."""
    return f"{name} ..." if criterion is None else f"{name}: {verdict(criterion.passed).text(lang)}"


def as_json(outcome: Verification, lang: str) -> str:
    """The report as JSON; evidence in `lang`, everything else the same in all languages."""
    value = {
        "schema": SCHEMA,
        "url": outcome.url,
        "model": outcome.model,
        "passed": outcome.passed,
        "seconds": round(outcome.seconds, 3),
        "criteria": [
            {
                "name": c.name,
                "passed": c.passed,
                "measured": dict(c.measured),
                "evidence": [e.text(lang) for e in c.evidence],
            }
            for c in outcome.criteria
        ],
        "capacity": msgspec.to_builtins(outcome.capacity),
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_text(outcome: Verification, lang: str) -> str:
    """The report as a table, then what the server says of its memory, then the verdict."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in (msg("criterion"), msg("verdict"), msg("measured"), msg("evidence")):
        table.add_column(heading.text(lang), overflow="fold")
    for c in outcome.criteria:
        evidence = "\n".join(e.text(lang) for e in c.evidence)
        table.add_row(c.name, verdict(c.passed).text(lang), Text(_measures(c.measured)), Text(evidence))
    out = io.StringIO()
    Console(file=out, width=_WIDTH, highlight=False, color_system=None).print(table)
    head = msg("{url}, model {model}", url=outcome.url, model=outcome.model).text(lang)
    tail = msg("{verdict} in {seconds:.1f} s", verdict=verdict(outcome.passed), seconds=outcome.seconds).text(lang)
    memory = "".join(f"{line.text(lang)}\n" for line in capacity_lines(outcome.capacity))
    table_text = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return f"{head}\n{table_text}\n{memory}{tail}"


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
            lines.append(f"{name}: " + _measures(value).replace("\n", ", "))
        elif isinstance(value, list):
            lines += [_measures(item).replace("\n", ", ") for item in value]
        elif value is not None:
            lines.append(f"{name} {value}")
    return "\n".join(lines)
