"""A simulated server: a response surface over a space of flags, with noise of rounds and of starts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import msgspec

from trimtab.bench.tuning.policy import Next, Result, Search, another_round, search
from trimtab.bench.tuning.space import Point, Space

Surface = Callable[[Point], float | None]
"""The true score of a launch; None where it dies."""


class Simulated(msgspec.Struct, frozen=True):
    """A search that came to its end."""

    found: Search
    results: tuple[Result, ...]

    @property
    def starts(self) -> int:
        return sum(one.kind != "skipped" for one in self.results)


def simulate(
    space: Space, surface: Surface, seed: int, *, rounds: float = 0.01, starts: float = 0.004, least: int = 3
) -> Simulated:
    """Search to the end; `rounds` and `starts` are relative spreads of noise."""
    source = random.Random(seed)
    results: list[Result] = []
    while True:
        found = search(space, results)
        if not isinstance(found.step, Next):
            return Simulated(found, tuple(results))
        results.append(_started(space, results, found.step, surface, source, (rounds, starts, least)))
        assert len(results) <= 2 * space.size


def _started(
    space: Space, results: Sequence[Result], step: Next, surface: Surface, source: random.Random,
    how: tuple[float, float, int],
) -> Result:  # fmt: skip
    rounds, starts, least = how
    true = surface(step.point)
    if true is None:
        return Result(step.point, "failed")
    level = true * source.gauss(1, starts)
    values: list[float] = []
    while another_round(space, results, step, values, least):
        values.append(level * source.gauss(1, rounds))
    return Result(step.point, "measured", tuple(values))


def optimum(space: Space, surface: Surface) -> float:
    """The best true score of the whole grid."""
    grid = itertools.product(*(range(len(knob.values)) for knob in space.knobs))
    return max(value for point in grid if (value := surface(point)) is not None)
