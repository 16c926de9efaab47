"""Changes that cannot gain anything under the load, seen from what the best launch did with it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.bench.tuning.objective import Objective, Round
from trimtab.bench.tuning.space import Value
from trimtab.messages import Message, msg

FULL = 0.95
"""From this use of the KV cache on a larger one may help."""


class Offered(msgspec.Struct, frozen=True):
    """The load: so many requests at once, of so many tokens."""

    concurrency: int
    input_tokens: int
    output_tokens: int


def idle(
    flag: str, before: Value, after: Value, offered: Offered, rounds: Sequence[Round], objective: Objective
) -> Message | None:
    """Why this change cannot gain; None where it may. `rounds`: of the launch that has `before`."""
    if not before or not after or not (before.isdigit() and after.isdigit()):
        return None
    low, high = int(before), int(after)
    if flag == "max-num-seqs":
        return _seqs(low, high, offered, rounds, objective)
    if flag == "max-num-batched-tokens" and high > low:
        most = offered.concurrency * offered.input_tokens
        if most <= low:
            return msg(
                "all prompts of the load together have {most:,} tokens: a step of {low:,} was never full",
                most=most, low=low,
            )  # fmt: skip
    return None


def _seqs(low: int, high: int, offered: Offered, rounds: Sequence[Round], objective: Objective) -> Message | None:
    if high > low:
        if low >= offered.concurrency:
            return msg("the load never has more than {n} requests at once, and {low} may run", n=offered.concurrency,
                       low=low)  # fmt: skip
        return None
    if objective != "throughput" or high >= offered.concurrency or not rounds:
        return None
    usage = max(one.server.get("most_kv_usage", 1.0) for one in rounds)
    preempted = max(one.server.get("preemptions", 1.0) for one in rounds)
    if preempted or usage >= FULL:
        return None
    return msg(
        "none of {n} requests at once was preempted and the KV cache was {usage:.0f}% full at most: fewer at once "
        "would only wait longer",
        n=min(low, offered.concurrency), usage=100 * usage,
    )  # fmt: skip
