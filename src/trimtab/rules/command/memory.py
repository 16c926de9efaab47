"""What the command rules over the memory budget share: one blame per launch, and the largest value that fits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from trimtab.messages import Message, msg
from trimtab.rules.rule import Fix, Grade, Severity

if TYPE_CHECKING:
    from trimtab.plan.memory.budget import Budget
    from trimtab.plan.memory.settings import Settings
    from trimtab.plan.memory.whatif import WhatIf
    from trimtab.rules.command.context import CommandContext

GIB = 1 << 30
UTILIZATIONS = tuple(round(0.5 + step / 100, 2) for step in range(50))
"""0.50 to 0.99."""
NAMES = {
    "oom_weights": "oom-weights",
    "oom_profile": "oom-profile",
    "no_kv_blocks": "no-kv-blocks",
    "kv_too_small_for_max_len": "kv-too-small-for-max-len",
    "oom_cuda_graph": "oom-cuda-graph",
    "unsafe_headroom": "utilization-unsafe",
    "free_memory_below_utilization": "free-memory-below-utilization",
}
"""Verdict of the budget -> the rule that speaks of it, where no flag of the launch is to blame."""
UNCERTAIN = 0.015
"""Share of the card by which the predicted KV cache may be off (docs/memory.md)."""
TIGHT = ("oom_cuda_graph", "unsafe_headroom")
TOO_LITTLE = ("no_kv_blocks", "kv_too_small_for_max_len")
"""Verdicts of a share so low that what is left for the KV cache is not enough."""


class Blame(msgspec.Struct, frozen=True):
    """A launch that does not start, or not safely, and the rule that says so."""

    rule: str
    case: WhatIf
    report: Budget


class Remedy(msgspec.Struct, frozen=True):
    """The largest value of a flag with which the launch fits."""

    flag: str
    value: object

    @property
    def words(self) -> Message:
        return msg("--{flag} {value}", zh="--{flag} {value}", flag=self.flag, value=self.value)


def blamed(context: CommandContext, rule: str) -> Iterator[Blame]:
    """The launch's blame where it falls to this rule; one launch is blamed by one rule."""
    case = context.memory
    if case is None:
        return
    report = case.budget()
    found = _blame(case, report)
    if found == rule:
        yield Blame(found, case, report)


def _blame(case: WhatIf, report: Budget) -> str | None:
    verdict = report.verdict
    if verdict in ("fits", "unknown") or lacks_states(report):
        return None
    flags = case.given.flags
    asked = flags.get("max_num_batched_tokens")
    if isinstance(asked, int) and verdict != "oom_weights":
        plain = _without(case, "max_num_batched_tokens").budget()
        if plain.verdict == "fits" and asked > plain.settings.max_num_batched_tokens:
            return "batched-tokens-too-large"
    if verdict in TIGHT and "gpu_memory_utilization" in flags and safe_utilization(case, report) is not None:
        return "utilization-unsafe"
    return NAMES.get(verdict)


def lacks_states(report: Budget) -> bool:
    """Whether there are blocks, but fewer than sequences with a recurrent state: a rule of its own speaks of that."""
    return report.verdict == "no_kv_blocks" and report.capacity.num_blocks > 0


def _without(case: WhatIf, name: str) -> WhatIf:
    flags = {k: v for k, v in case.given.flags.items() if k != name}
    return replace(case, given=replace(case.given, flags=flags))


def safe_utilization(case: WhatIf, report: Budget) -> float | None:
    """The highest --gpu-memory-utilization below the launch's own at which it fits with room to spare."""
    lower = [u for u in UTILIZATIONS if u < report.settings.gpu_memory_utilization]

    def spared(util: float) -> str | None:
        verdict = case.budget(gpu_memory_utilization=util).verdict
        return verdict if verdict in ("fits", *TOO_LITTLE) else None

    fewer = bisect_left(lower, True, key=lambda util: spared(util) is None)  # the lower, the more room is spared
    return lower[fewer - 1] if fewer and spared(lower[fewer - 1]) == "fits" else None


def remedy(case: WhatIf, report: Budget, *names: str) -> Remedy | None:
    """The first of these flags (vLLM's names) that mends the launch alone, with its largest value that fits."""
    settings = report.settings
    for name in names:
        choices = _choices(name, settings)
        value = case.largest(name, choices, lambda b: b.verdict == "fits") if choices else None
        if value is not None:
            return Remedy(name.replace("_", "-"), value)
    return None


def _choices(name: str, settings: Settings) -> Sequence[object]:
    match name:
        case "max_model_len":
            return powers(1024, settings.max_model_len - 1)
        case "max_num_seqs":
            return range(1, settings.max_num_seqs)
        case "max_num_batched_tokens":
            return [n for n in powers(512, settings.max_num_batched_tokens - 1) if n % 512 == 0]
        case "kv_cache_memory_bytes":
            return [n << 30 for n in range(1, -(-(settings.kv_cache_memory_bytes or 0) >> 30))]
    return [u for u in UTILIZATIONS if settings.gpu_memory_utilization < u <= 0.95]


def hedged(report: Budget) -> Severity | None:
    """A warning instead of an error where the shortage is within what the prediction may be off; else None."""
    rank = min(report.ranks, key=lambda r: r.headroom.value)
    lacking = max(-rank.headroom.value, 0.0)
    if report.verdict == "kv_too_small_for_max_len":
        lacking = report.capacity.needed_bytes / GIB - report.tightest.kv_cache.value
    elif report.verdict == "no_kv_blocks":
        lacking = -report.tightest.kv_cache.value
    return Severity.WARNING if lacking < UNCERTAIN * rank.card.total_gib else None


def powers(low: int, high: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 ... within the bounds, rising."""
    return sorted({n for k in range(31) for n in (1 << k, 3 << k) if low <= n <= high})


def tensor_size(context: CommandContext, case: WhatIf, report: Budget, most: int = 16) -> int | None:
    """The smallest larger tensor-parallel size, on as many cards like these, at which the launch fits."""
    from trimtab.rules.command.facts import first_cut, heads_allow

    settings, card = report.settings, min(report.cards, key=lambda c: c.total_gib)
    for size in range(settings.tensor_parallel_size + 1, most + 1):
        if not heads_allow(case.model, size) or first_cut(context, case.model, size) is not None:
            continue
        wide = replace(case, cards=[card] * (size * settings.pipeline_parallel_size))
        if wide.budget(tensor_parallel_size=size).verdict == "fits":
            return size
    return None


def fix_to(context: CommandContext, found: Remedy | None) -> Fix | None:
    """The fix that sets the flag, where a value was found."""
    return None if found is None else context.set_flag(found.flag, str(found.value), Grade.UNSAFE)


def advice(found: Remedy | None) -> Message:
    """What to do, in a few words."""
    if found is None:
        return msg("no single flag mends it", zh="改动单个参数无法解决")
    return msg("{words} fits", zh="{words} 可以放下", words=found.words)
