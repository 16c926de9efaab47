"""What the command rules over the memory budget share; no rule itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trimtab.messages import Message
from trimtab.plan.memory.budget import Budget
from trimtab.plan.memory.verdict import Verdict
from trimtab.plan.memory.whatif import WhatIf
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Fix, Grade

UTILIZATIONS = tuple(round(0.5 + step / 100, 2) for step in range(50))
"""0.50 to 0.99."""


def failing(context: CommandContext, verdict: Verdict) -> Iterator[tuple[WhatIf, Budget]]:
    """The launch's budget where this is its verdict; nothing where it is another."""
    case = context.memory
    if case is None:
        return
    report = case.budget()
    if report.verdict == verdict:
        yield case, report


def powers(low: int, high: int) -> list[int]:
    """1, 2, 4 ... within the bounds, and the middle steps (3, 6, 12, ...), rising."""
    found = {n for k in range(31) for n in (1 << k, 3 << k) if low <= n <= high}
    return sorted(found)


def lengths(below: int) -> list[int]:
    """Context lengths from 512 up to `below`, in steps of 1/16 of their size, rising; each a multiple of 16."""
    found, at = [], 512
    while at < below:
        found.append(at)
        at += max(16, at // 256 * 16)
    return found


def largest_util(case: WhatIf, below: float) -> float | None:
    """The highest --gpu-memory-utilization under `below` at which the launch fits with room to spare."""
    choices = [u for u in UTILIZATIONS if u < below]
    found = case.largest("gpu_memory_utilization", choices, lambda b: b.verdict != "unsafe_headroom" and _starts(b))
    return found if isinstance(found, float) and case.budget(gpu_memory_utilization=found).verdict == "fits" else None


def _starts(report: Budget) -> bool:
    """Whether more utilisation may still be tried: too little is no reason to go lower."""
    return report.verdict in ("fits", "no_kv_blocks", "kv_too_small_for_max_len")


def fix_to(context: CommandContext, flag: str, value: object) -> Fix | None:
    """The fix that sets this flag, where a value was found."""
    return None if value is None else context.set_flag(flag, str(value), Grade.UNSAFE)


def reason(report: Budget) -> Message:
    """The budget's own reason, with its numbers."""
    return report.reasons[0]


def tensor_sizes(context: CommandContext, more_than: int) -> Sequence[int]:
    """Larger tensor-parallel sizes that the GPUs given and the model's heads allow, rising."""
    from trimtab.rules.command.facts import first_cut, heads_allow

    model, count = context.require_model(), context.require_gpus().count
    pipeline = context.integer("pipeline-parallel-size", 1) or 1
    return [
        n
        for n in range(more_than + 1, count // pipeline + 1)
        if heads_allow(model, n) and first_cut(context, model, n) is None
    ]
