"""The search itself: from all trials so far to the next start, or to the end and why. Pure, and replayed from the start
each time, so that an interrupted search goes on where it was.

One knob is changed at a time and followed while it gains; then the next. A knob is taken up again only when another
one was changed since. It ends when no single change of the best launch gains beyond the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from trimtab.bench.tuning.judging import Comparison, Starts, compare, noise, score
from trimtab.bench.tuning.space import Point, Space

MAX_STARTS = 2
"""Of one launch: the second where the first leaves it unclear whether it gains."""
Kind = Literal["measured", "skipped", "failed"]


class Result(msgspec.Struct, frozen=True):
    """What came of a trial: the scores of its rounds, or nothing where it was not started or failed."""

    point: Point
    kind: Kind
    rounds: tuple[float, ...] = ()


class Next(msgspec.Struct, frozen=True):
    """The next start. `knob`: which one differs from `base`, the best so far; None for the plan itself."""

    point: Point
    base: Point
    knob: int | None
    again: bool = False  # it was started before and its gain is unclear


class Decision(msgspec.Struct, frozen=True):
    """How a trial was judged. `comparison` None where it was not measured."""

    point: Point
    base: Point
    knob: int | None
    kept: bool
    kind: Kind
    comparison: Comparison | None = None


class Stop(msgspec.Struct, frozen=True):
    """No change gains any more; `failed`: the plan itself could not be measured."""

    best: Point
    failed: bool = False


class Search(msgspec.Struct, frozen=True):
    """Where a search stands: what is to be done next, the best launch, and every decision in order."""

    step: Next | Stop
    best: Point
    decisions: tuple[Decision, ...]


class _Missing(Exception):
    def __init__(self, step: Next) -> None:
        self.step = step


def search(space: Space, results: Sequence[Result]) -> Search:
    """Where the search stands after these results; the same for the same results."""
    walk = _Walk(space, results)
    try:
        step: Next | Stop = walk.to_the_end()
    except _Missing as missing:
        step = missing.step
    return Search(step, walk.best, tuple(walk.decisions))


def another_round(space: Space, results: Sequence[Result], step: Next, rounds: Sequence[float], least: int) -> bool:
    """Whether the server that runs shall be measured once more: fewer than `least` rounds, the plan's own start, which
    all others are compared with, or a gain that is unclear; twice `least` at most."""
    if len(rounds) < least:
        return True
    if len(rounds) >= 2 * least:
        return False
    if step.knob is None:
        return True
    now = (*results, Result(step.point, "measured", tuple(rounds)))
    starts = _launches(now)
    return compare(starts[step.point], starts[step.base], noise(list(starts.values()))).verdict == "unclear"


def _launches(results: Sequence[Result]) -> Mapping[Point, Starts]:
    found: dict[Point, Starts] = {}
    for one in results:
        if one.kind == "measured":
            found[one.point] = (*found.get(one.point, ()), one.rounds)
    return found


class _Walk:
    """Takes the results in the order in which they came, so that no later one changes an earlier decision."""

    def __init__(self, space: Space, results: Sequence[Result]) -> None:
        self._space, self._results = space, iter(results)
        self._starts: dict[Point, Starts] = {}
        self._lost: dict[Point, Kind] = {}
        self.best = space.start
        self.decisions: list[Decision] = []

    def to_the_end(self) -> Stop:
        """Walk as far as the results go. _Missing names the start that is needed next."""
        step = Next(self.best, self.best, None)
        measured = self._is_measured(step)
        kind: Kind = "measured" if measured else self._lost[self.best]
        self.decisions.append(Decision(self.best, self.best, None, measured, kind))
        if not measured:
            return Stop(self.best, failed=True)
        settled_at: dict[int, Point] = {}
        for knob in self._turns(settled_at):
            self._follow(knob)
            settled_at[knob] = self.best
        return Stop(self.best)

    def _turns(self, settled_at: Mapping[int, Point]) -> Iterator[int]:
        """The knobs in order, again and again, but for those that were settled beside the same values of the others."""
        while True:
            before = dict(settled_at)
            for knob in range(len(self._space.knobs)):
                if settled_at.get(knob) != self.best:
                    yield knob
            if settled_at == before:
                return

    def _follow(self, knob: int) -> None:
        """Change this knob while it gains; the other way only where the first did not."""
        for way in self._space.directions(self.best, knob):
            moved = False
            for point in way:
                if not self._gains(Next(point, self.best, knob)):
                    break
                self.best, moved = point, True
            if moved and self._space.knobs[knob].ordered:
                return

    def _gains(self, step: Next) -> bool:
        if not self._is_measured(step):
            return self._decided(step, self._lost[step.point])
        found = self._compared(step)
        if found.verdict == "unclear" and len(self._starts[step.point]) < MAX_STARTS:
            self._take(msgspec.structs.replace(step, again=True))
            if step.point in self._lost:
                return self._decided(step, self._lost[step.point])
            found = self._compared(step)
        return self._decided(step, "measured", found)

    def _compared(self, step: Next) -> Comparison:
        seen = noise(list(self._starts.values()))
        return compare(self._starts[step.point], self._starts[step.base], seen)

    def _decided(self, step: Next, kind: Kind, found: Comparison | None = None) -> bool:
        kept = found is not None and found.verdict == "keep"
        self.decisions.append(Decision(step.point, step.base, step.knob, kept, kind, found))
        return kept

    def _is_measured(self, step: Next) -> bool:
        if step.point not in self._starts and step.point not in self._lost:
            self._take(step)
        return step.point not in self._lost

    def _take(self, step: Next) -> None:
        """The result of this start, which is the next one; _Missing where there is none yet."""
        result = next(self._results, None)
        if result is None:
            raise _Missing(step)
        if result.point != step.point:
            raise ValueError(f"the result of {result.point} stands where that of {step.point} belongs")
        if result.kind == "measured":
            self._starts[result.point] = (*self._starts.get(result.point, ()), result.rounds)
        else:
            self._lost[result.point] = result.kind


def best_score(results: Sequence[Result], best: Point) -> float | None:
    """The score of a launch; None where it was not measured."""
    starts = _launches(results).get(best)
    return score(starts) if starts else None
