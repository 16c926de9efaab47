"""One launch's budget, and what it would be with other flags: the largest value that still fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.budget import Budget, budget
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.defaults import resolve
from trimtab.plan.memory.given import Given
from trimtab.plan.memory.versions import Release

FITTING = ("fits", "unsafe_headroom")
STEPS = 8


class WhatIf(msgspec.Struct, frozen=True, dict=True):
    """A launch whose flags can be varied."""

    given: Given
    version: Release
    model: ModelFacts
    cards: Sequence[Card]

    def budget(self, **flags: object) -> Budget:
        """The budget with these flags (vLLM's names with underscores) in place of the launch's own."""
        asked = tuple(sorted(flags.items()))
        if asked not in self._known:
            self._known[asked] = self._with(flags)
        return self._known[asked]

    @cached_property
    def _known(self) -> dict[tuple[tuple[str, object], ...], Budget]:
        """Budgets reckoned before: every rule on memory asks for the launch's own, and several for the same change."""
        return {}

    def _with(self, flags: Mapping[str, object]) -> Budget:
        given = replace(self.given, flags={**self.given.flags, **flags})
        settings = resolve(given, self.version, self.model, self.cards)
        return budget(settings, self.model, self.cards)

    def fits(self, **flags: object) -> bool:
        return self.budget(**flags).verdict in FITTING

    def largest(self, name: str, choices: Sequence[object], accept: Callable[[Budget], bool] | None = None) -> object:
        """The last of `choices` (rising) whose budget is accepted (fits, by default); None when the first is not.

        Captured sizes go up in steps, so a few values above the first that is not accepted are tried too.
        """
        good = accept or (lambda b: b.verdict in FITTING)
        low, high, found = 0, len(choices) - 1, -1
        while low <= high:
            middle = (low + high) // 2
            if good(self.budget(**{name: choices[middle]})):
                found, low = middle, middle + 1
            else:
                high = middle - 1
        beyond = range(found + 1, min(found + 1 + STEPS, len(choices))) if found >= 0 else ()
        found = max((i for i in beyond if good(self.budget(**{name: choices[i]}))), default=found)
        return choices[found] if found >= 0 else None
