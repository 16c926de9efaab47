"""What planning ends in: the plan with its reasons, what lost against it, what was given up and what else would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.messages import Message, msg
from trimtab.plan.estimate import Estimate
from trimtab.plan.memory.budget import Budget
from trimtab.plan.reasons import Why
from trimtab.plan.safety import Reserve
from trimtab.plan.splits import Split
from trimtab.plan.wish import Wish, held


class Alternative(msgspec.Struct, frozen=True):
    """A nearby plan that does fit, and what it costs."""

    what: Message
    cost: Message
    command: LaunchCommand
    budget: Budget


class Lost(msgspec.Struct, frozen=True):
    """A way (a split, a flag, a checkpoint) that was considered and not taken, why, and where the reason is from."""

    what: str
    reason: Message
    source: str = "memory model"


Verdict = Literal[
    "fits", "too_few_at_once", "unsupported", "unsafe_headroom", "kv_too_small_for_max_len", "no_kv_blocks",
    "oom_weights", "oom_profile", "oom_cuda_graph", "free_memory_below_utilization", "unknown",
]  # fmt: skip
"""The budget's own, and two of a plan's: it starts and holds fewer requests at once than wished; vLLM refuses it."""


class Plan(msgspec.Struct, frozen=True):
    """The launch, why each flag, and what else would do.

    `lost`: other splits; `considered`: other flags and checkpoints; `refusal`: why vLLM would not run it at all.
    """

    command: LaunchCommand
    env: Mapping[str, str]
    budget: Budget
    wish: Wish
    why: tuple[Why, ...]
    split: Split
    estimate: Estimate | None = None
    reserve: Reserve | None = None
    lost: tuple[Lost, ...] = ()
    considered: tuple[Lost, ...] = ()
    given_up: tuple[Message, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    refusal: Message | None = None

    @property
    def holds(self) -> float:
        """Requests of the wished size at once, over all data ranks; the cache's own word where nothing is cached."""
        return held(self.budget, self.wish)

    @property
    def verdict(self) -> Verdict:
        """On the wish as a whole: `fits` where it starts and holds what was asked for, else what it fails at."""
        if self.refusal is not None:
            return "unsupported"
        if self.budget.verdict == "fits" and self.holds < (self.wish.concurrency or 1):
            return "too_few_at_once"
        return self.budget.verdict

    @property
    def fits(self) -> bool:
        return self.verdict == "fits"

    @property
    def reasons(self) -> tuple[Message, ...]:
        """The verdict with its numbers."""
        if self.refusal is not None:
            return (self.refusal,)
        return (_too_few(self),) if self.verdict == "too_few_at_once" else self.budget.reasons


def _too_few(plan: Plan) -> Message:
    wish, rank = plan.wish, plan.budget.tightest
    each = rank.kv_cache.value * plan.budget.settings.data_parallel_size / plan.holds if plan.holds else 0.0
    return msg(
        "it starts, and its KV cache of {have:.2f} GiB a card holds {held:.1f} of {n} requests of {size:,} tokens; "
        "each takes {each:.2f} GiB",
        have=rank.kv_cache.value,
        held=plan.holds,
        n=wish.concurrency or 1,
        size=wish.request_tokens,
        each=each,
    )
