"""Figures of pairs: the same prompt asked of both. Change with a bootstrap interval, Wilcoxon's signed ranks. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import erfc, sqrt

import msgspec

from trimtab.bench.stats import Estimate

RESAMPLES = 2000
LEAST = 5  # pairs, for an interval
_EXACT = 30  # pairs, up to which all signs are counted


class Paired(msgspec.Struct, frozen=True):
    """`a` and `b` are means; `change` is b / a - 1 with its 95% interval; `p` two-sided, None of too few pairs."""

    count: int
    a: float
    b: float
    change: Estimate
    smaller: int  # pairs in which b is the smaller
    p: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the interval leaves zero out and the ranks agree."""
        low, high = self.change.low, self.change.high
        return low is not None and high is not None and not low <= 0 <= high and self.p is not None and self.p < 0.05


def paired(pairs: Sequence[tuple[float, float]], seed: int) -> Paired | None:
    """The figures of (a, b) pairs; None where there are none or `a` is zero throughout."""
    count = len(pairs)
    if not count or not (a := sum(x for x, _ in pairs) / count):
        return None
    b = sum(y for _, y in pairs) / count
    smaller = sum(y < x for x, y in pairs)
    if count < LEAST:
        return Paired(count, a, b, Estimate(b / a - 1), smaller)
    source, found = random.Random(seed), []
    for _ in range(RESAMPLES):
        drawn = source.choices(pairs, k=count)
        base = sum(x for x, _ in drawn)
        if base:
            found.append(sum(y for _, y in drawn) / base - 1)
    found.sort()
    low, high = found[int(0.025 * len(found))], found[int(0.975 * len(found))]
    return Paired(count, a, b, Estimate(b / a - 1, low, high), smaller, wilcoxon([y - x for x, y in pairs]))


def wilcoxon(differences: Sequence[float]) -> float:
    """Two-sided p of the signed-rank test, zeros left out, ties with their mean rank; exact up to 30 differences."""
    kept = sorted((d for d in differences if d), key=abs)
    count = len(kept)
    if not count:
        return 1.0
    ranks = _doubled_ranks([abs(d) for d in kept])
    positive = sum(rank for rank, d in zip(ranks, kept, strict=True) if d > 0)
    total = sum(ranks)
    extreme = min(positive, total - positive)
    if count <= _EXACT:
        return min(1.0, _ways(ranks, extreme) / 2.0 ** (count - 1))
    spread = sqrt(sum(rank * rank for rank in ranks) / 4)  # of the sum of ranks with random signs
    return min(1.0, erfc(max(0.0, total / 2 - extreme - 1) / spread / sqrt(2)))


def _doubled_ranks(ordered: Sequence[float]) -> list[int]:
    """Twice the ranks, so that the mean rank of ties is whole."""
    ranks: list[int] = []
    while len(ranks) < len(ordered):
        first = len(ranks)
        last = first
        while last + 1 < len(ordered) and ordered[last + 1] == ordered[first]:
            last += 1
        ranks += [first + last + 2] * (last - first + 1)
    return ranks


def _ways(ranks: Sequence[int], most: int) -> int:
    """In how many of all choices of signs the positive ranks sum to `most` or less."""
    ways = [1] + [0] * most
    for rank in ranks:
        for total in range(most, rank - 1, -1):
            ways[total] += ways[total - rank]
    return sum(ways)
