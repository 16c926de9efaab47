"""`--gpu any`: which sets of cards serve a wish, the smallest hardware first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from trimtab.plan.kinds import COUNTS
from trimtab.plan.memory.card import Card
from trimtab.plan.outcome import Plan
from trimtab.plan.wish import Task, Wish

MACHINES = (16, 32)
"""Tried where no single machine does."""


class Ranked(msgspec.Struct, frozen=True):
    """A set of equal cards and its plan."""

    name: str
    count: int
    plan: Plan

    @property
    def total_gib(self) -> float:
        return self.count * self.plan.budget.cards[0].total_gib


def rank_sets(
    task: Task, wish: Wish, kinds: Sequence[tuple[str, Card]], make: Callable[[Task, Wish], Plan | None]
) -> tuple[Ranked, ...]:
    """The smallest number of each kind that serves the wish, ordered by memory in all, then by number of cards.

    Kinds that do not serve it even eightfold are left out, unless none does: then several machines are tried.
    """
    for counts in (COUNTS, MACHINES):
        found = [one for kind in kinds if (one := _smallest(task, wish, kind, counts, make)) is not None]
        if found:
            return tuple(sorted(found, key=lambda r: (round(r.total_gib), r.count, r.name)))
    return ()


def _smallest(
    task: Task, wish: Wish, kind: tuple[str, Card], counts: Sequence[int], make: Callable[[Task, Wish], Plan | None]
) -> Ranked | None:
    name, card = kind
    for count in counts:
        if task.model.stored_bytes / 2**30 > count * card.total_gib:
            continue  # the weights alone are more
        made = make(replace(task, cards=(card,) * count), wish)
        if made is not None:
            return Ranked(name, count, made)
    return None
