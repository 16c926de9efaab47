"""The fix of a log's finding: an edit of the launch command, where that command is known. Not a rule."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from trimtab.messages import Message, msg
from trimtab.rules.command.memory import Remedy, remedy, safe_utilization, tensor_size
from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import FactMissing, Fix, Grade

if TYPE_CHECKING:
    from trimtab.plan.memory.whatif import WhatIf

SAFE_UTILIZATION = 0.95
"""Above it, graphs, NCCL and the allocator's holes may find nothing left (docs/memory.md)."""
USUAL_UTILIZATION = 0.9
SPARE_GIB = 0.5
"""Left free beside what a failed allocation lacked."""
GIB = 1 << 30
LOWER = msg("lower --gpu-memory-utilization by 0.03 to 0.05", zh="请把 --gpu-memory-utilization 降低 0.03 到 0.05")


def set_flag(context: LogContext, name: str, value: str | None, grade: Grade = Grade.UNSAFE) -> Fix | None:
    """Give the flag (long name, without dashes before it) this value; None where the launch is not known."""
    return context.launch.set_flag(name, value, grade) if context.launch else None


def remove_flag(context: LogContext, name: str, grade: Grade = Grade.UNSAFE) -> Fix | None:
    """Take the flag out; None where the launch is not known or does not give it."""
    if context.launch is None:
        return None
    use = context.launch.command.last(name)
    return context.launch.remove(use, grade) if use else None


def what_if(context: LogContext) -> WhatIf | None:
    """The memory model of the launch; None where model, cards or command are not known well enough."""
    try:
        return context.launch.memory if context.launch else None
    except FactMissing:
        return None


def largest_that_fits(context: LogContext, *names: str) -> Remedy | None:
    """The first of these flags (vLLM's names, with underscores) that mends the launch, as the memory model reckons.

    None too where the model holds that the launch fits as it is: then it does not know what went wrong.
    """
    case = what_if(context)
    report = case.budget() if case else None
    if case is None or report is None or report.verdict in ("fits", "unknown"):
        return None
    found = remedy(case, report, *names)
    if found is not None and found.flag == "gpu-memory-utilization":
        usual = case.budget(gpu_memory_utilization=USUAL_UTILIZATION).verdict == "fits"
        return Remedy(found.flag, USUAL_UTILIZATION) if usual else found
    return found


def lower_utilization(context: LogContext, lacking_gib: float | None, total_gib: float | None) -> str | None:
    """The share that leaves what an allocation lacked, and some more: the memory model's or, without it, by the log."""
    given = context.facts.args.get("gpu_memory_utilization")
    case = what_if(context)
    if case is not None:
        report = case.budget()
        given = report.settings.gpu_memory_utilization
        safe = safe_utilization(case, report) if report.verdict not in ("fits", "unknown") else None
        if safe is not None:
            return f"{safe:.2f}"
    total = total_gib or context.facts.numbers.get("total_gib")
    if not isinstance(given, float) or total is None:
        return None
    steps = ceil(((lacking_gib or 0.0) + SPARE_GIB) / total * 100)
    share = min(given - max(steps, 2) / 100, SAFE_UTILIZATION)
    return f"{share:.2f}" if share >= 0.3 else None


def take_less(context: LogContext, lacking_gib: float | None, total_gib: float | None) -> tuple[Message, Fix | None]:
    """What to do where vLLM's share leaves too little beside it, in a few words and as an edit.

    Where --kv-cache-memory-bytes is given it takes the place of --gpu-memory-utilization, which then changes nothing
    (0.26 v1/worker/gpu_worker.py `determine_available_memory`).
    """
    given = context.facts.args.get("kv_cache_memory_bytes")
    if isinstance(given, int):
        found = largest_that_fits(context, "kv_cache_memory_bytes")
        fewer = given - ceil(((lacking_gib or 0.0) + SPARE_GIB) * GIB)
        less = found or (Remedy("kv-cache-memory-bytes", fewer) if fewer > 0 else None)
    else:
        share = lower_utilization(context, lacking_gib, total_gib)
        less = Remedy("gpu-memory-utilization", share) if share else None
    if less is None:
        return LOWER, None
    return msg("try {words}", zh="请试 {words}", words=less.words), set_flag(context, less.flag, str(less.value))


def utilization(context: LogContext) -> float | None:
    """--gpu-memory-utilization of the launch, given or the version's default."""
    given = context.facts.args.get("gpu_memory_utilization")
    if isinstance(given, int | float):
        return float(given)
    case = what_if(context)
    return case.budget().settings.gpu_memory_utilization if case else None


def wider(context: LogContext) -> Fix | None:
    """The next larger --tensor-parallel-size at which the launch fits on more such cards; None where none is known."""
    case = what_if(context)
    report = case.budget() if case else None
    if case is None or report is None or context.launch is None or report.verdict in ("fits", "unknown"):
        return None
    size = tensor_size(context.launch, case, report)
    return context.launch.set_flag("tensor-parallel-size", str(size)) if size else None
