"""Sets of cards that serve a wish, as a table and as JSON, schema `trimtab.gpu-sets/1`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trimtab.cli.format.columns import columns, padded
from trimtab.cli.format.json import dump
from trimtab.messages import msg
from trimtab.plan.sets import Ranked

SCHEMA = "trimtab.gpu-sets/1"
DASH = "-"


def text(found: Sequence[Ranked], lang: str) -> str:
    """One row a set, the smallest first; the command of the first."""
    if not found:
        return msg("No set of up to 32 equal cards serves this.").text(lang) + "\n"
    heads = [
        m.text(lang)
        for m in (msg("cards"), msg("GiB in all"), msg("split"), msg("tokens a request"), msg("requests held"),
                  msg("tokens/s, estimate"))
    ]  # fmt: skip
    rows = [heads, *([*_cells(one)] for one in found)]
    widths = [max(columns(row[i]) for row in rows) for i in range(len(heads))]
    lines = ["  ".join(padded(cell, w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    first = msg("The first: trimtab plan ... --gpu {name}", name=f"{found[0].count}x{found[0].name.replace(' ', '-')}")
    return "\n".join([*lines, "", first.text(lang), shlex.join(found[0].plan.command.argv())]) + "\n"


def _cells(one: Ranked) -> tuple[str, ...]:
    told = one.plan.estimate.output_tokens_s if one.plan.estimate else None
    speed = f"{told.low:,.0f} - {told.high:,.0f}" if told else DASH
    return (
        f"{one.count} x {one.name}",
        f"{one.total_gib:.0f}",
        one.plan.split.text + (", eager" if one.plan.budget.settings.enforce_eager else ""),
        f"{one.plan.wish.request_tokens:,}",
        f"{one.plan.holds:.1f}",
        speed,
    )


def value(found: Sequence[Ranked], lang: str) -> str:
    """The same as data."""
    sets = [
        {
            "gpu": one.name,
            "count": one.count,
            "total_gib": round(one.total_gib, 2),
            "split": one.plan.split.text,
            "request_tokens": one.plan.wish.request_tokens,
            "requests_held": round(one.plan.holds, 2),
            "output_tokens_s": _span(one),
            "command": one.plan.command.argv(),
        }
        for one in found
    ]
    return dump({"schema": SCHEMA, "sets": sets})


def _span(one: Ranked) -> list[float] | None:
    told = one.plan.estimate.output_tokens_s if one.plan.estimate else None
    return [round(told.low, 1), round(told.high, 1)] if told else None
