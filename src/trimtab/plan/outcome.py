"""What planning ends in: the plan with its reasons, what lost against it, what was given up and what else would do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.messages import Message
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
    """A way that was considered and not taken, and why."""

    what: str
    reason: Message


class Plan(msgspec.Struct, frozen=True):
    """The launch, why each flag, and what else would do. `fits` is the budget's word on the wish as a whole."""

    command: LaunchCommand
    env: Mapping[str, str]
    budget: Budget
    wish: Wish
    why: tuple[Why, ...]
    split: Split
    estimate: Estimate | None = None
    reserve: Reserve | None = None
    lost: tuple[Lost, ...] = ()
    given_up: tuple[Message, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def holds(self) -> float:
        """Requests of the wished size at once, over all data ranks; the cache's own word where nothing is cached."""
        return held(self.budget, self.wish)

    @property
    def fits(self) -> bool:
        return self.budget.verdict == "fits" and self.holds >= (self.wish.concurrency or 1)
