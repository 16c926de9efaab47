"""What a tuning may change: flags with the values that are tried, and points, which are one value of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

Value = str | None
"""As on the command line; None: the flag is left out, "true" and "false": a switch and its `--no-` form."""
Point = tuple[int, ...]
"""The place of the value of each knob, in the order of the space."""


class Knob(msgspec.Struct, frozen=True):
    """One flag. With `ordered` values a step goes to a neighbour, else to each of the others.

    `up`: whether the next larger value is tried before the next smaller one.
    """

    flag: str  # "max-num-seqs"
    values: tuple[Value, ...]
    ordered: bool = True
    up: bool = True


class Space(msgspec.Struct, frozen=True):
    """All knobs, the most telling first, and the point where the search begins: the plan."""

    knobs: tuple[Knob, ...]
    start: Point

    @property
    def size(self) -> int:
        """Starts of a full grid."""
        count = 1
        for knob in self.knobs:
            count *= len(knob.values)
        return count

    def value(self, point: Point, knob: int) -> Value:
        return self.knobs[knob].values[point[knob]]

    def flags(self, point: Point) -> dict[str, Value]:
        """Flag -> value of every knob."""
        return {knob.flag: knob.values[at] for knob, at in zip(self.knobs, point, strict=True)}

    def changes(self, point: Point, other: Point) -> dict[str, tuple[Value, Value]]:
        """Flag -> (value in `point`, value in `other`) where they differ."""
        return {
            knob.flag: (knob.values[a], knob.values[b])
            for knob, a, b in zip(self.knobs, point, other, strict=True)
            if a != b
        }

    def directions(self, point: Point, knob: int) -> Iterator[tuple[Point, ...]]:
        """The ways to change one knob, each as the points on it, nearest first."""
        found, here = self.knobs[knob], point[knob]
        if not found.ordered:
            yield from ((_at(point, knob, other),) for other in range(len(found.values)) if other != here)
            return
        above = tuple(_at(point, knob, other) for other in range(here + 1, len(found.values)))
        below = tuple(_at(point, knob, other) for other in range(here - 1, -1, -1))
        for way in (above, below) if found.up else (below, above):
            if way:
                yield way


def _at(point: Point, knob: int, value: int) -> Point:
    return (*point[:knob], value, *point[knob + 1 :])
