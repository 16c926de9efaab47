"""What came of one criterion of a verification: a verdict with evidence, figures to compare later, the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from trimtab.bench.stats import Estimate
from trimtab.messages import Message

Verdict = Literal["passed", "failed", "not_applicable", "not_measured"]


class Figure(msgspec.Struct, frozen=True):
    """A number worth comparing with a later run; `low` to `high` is its spread within this run, None: not known."""

    name: str
    value: float
    unit: str
    better: Literal["less", "more"]
    low: float | None = None
    high: float | None = None


class Criterion(msgspec.Struct, frozen=True):
    """The outcome of one. `not_applicable`: the server does not offer it; `not_measured`: nothing can be said."""

    verdict: Verdict
    evidence: tuple[Message, ...] = ()
    measured: Mapping[str, object] = {}
    next: tuple[Message, ...] = ()
    figures: tuple[Figure, ...] = ()
    series: Mapping[str, tuple[tuple[float, float], ...]] = {}  # for pictures: (x, y)
    name: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool | None:
        """None where it was not judged, for whatever reason."""
        return {"passed": True, "failed": False}.get(self.verdict)


def estimated(name: str, found: Estimate, unit: str, better: Literal["less", "more"]) -> Figure:
    """An estimate with its interval as a figure."""
    return Figure(name, found.value, unit, better, found.low, found.high)
