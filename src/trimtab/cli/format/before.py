"""The minutes before a crash as a small table: a column only where something was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.format.columns import columns
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.engine.before import Before, Minute

_COLUMNS: tuple[tuple[Message, Callable[[Minute], str | None]], ...] = (
    (msg("minute"), lambda row: f"-{row.ago}"),
    (msg("running"), lambda row: _count(row.running)),
    (msg("waiting"), lambda row: _count(row.waiting)),
    (msg("KV full"), lambda row: f"{row.kv:.0%}" if row.kv is not None else None),
    (msg("preempted"), lambda row: _count(row.preemptions)),
    (msg("tokens/s"), lambda row: f"{row.tokens_s:.0f}" if row.tokens_s is not None else None),
    (
        msg("longest prompt (finished)"),
        lambda row: f"<= {row.longest_finished}" if row.longest_finished is not None else None,
    ),
    (msg("GPU GiB"), lambda row: _gib_of(row.gpu_mib, row.gpu_total_mib)),
    (msg("host free GiB"), lambda row: f"{row.ram_mib / 1024:.1f}" if row.ram_mib is not None else None),
    (msg("no answer"), lambda row: _count(row.silent or None)),
)


def before_text(before: Before, lang: str) -> list[str]:
    """The lines of the table, without the sentence; none when nothing was recorded."""
    shown = [
        [heading.text(lang), *(cell(row) or "" for row in before.minutes)]
        for heading, cell in _COLUMNS
        if any(cell(row) for row in before.minutes)
    ]
    if not before.minutes:
        return []
    widths = [max(map(columns, column)) for column in shown]
    rows = zip(*shown, strict=True)
    lines = (
        "  ".join(" " * (width - columns(word)) + word for word, width in zip(row, widths, strict=True)) for row in rows
    )
    return [line.rstrip() for line in lines]


def before_json(before: Before, lang: str) -> dict[str, Any]:
    """`minutes` with what was seen, and the `sentence`."""
    minutes = [{k: v for k, v in msgspec.to_builtins(row).items() if v is not None} for row in before.minutes]
    return {"until": before.at, "sentence": before.sentence.text(lang), "minutes": minutes}


def _count(value: int | None) -> str | None:
    return str(value) if value is not None else None


def _gib_of(used: int | None, total: int | None) -> str | None:
    return f"{used / 1024:.1f} of {total / 1024:.1f}" if used is not None and total is not None else None
