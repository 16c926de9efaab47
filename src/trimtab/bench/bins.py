"""Values put into bins, for pictures: how latencies are spread, and tokens a second over a run. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import log10

import msgspec

from trimtab.bench.stats import Timed

MOST_BINS = 60
_LONG_TAIL = 20  # a largest value so many times the median is drawn on a logarithmic axis


class Bins(msgspec.Struct, frozen=True):
    """`counts[i]` values lie from `edges[i]` to `edges[i + 1]`; `log`: the edges grow by a factor."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    log: bool = False

    @property
    def widths(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.edges, self.edges[1:], strict=False))


def spread(values: Sequence[float], most_bins: int = MOST_BINS) -> Bins:
    """A histogram of `values` (one at least); as many bins as the square root of their number, at most `most_bins`."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    count = max(8, min(most_bins, round(len(ordered) ** 0.5)))
    middle = ordered[len(ordered) // 2]
    log = 0 < middle < high / _LONG_TAIL
    if log:
        floor = max(low, middle / 1000, 1e-6)
        step = (log10(high) - log10(floor)) / count
        edges = [10 ** (log10(floor) + step * at) for at in range(count + 1)]
    else:
        high = max(high, low + max(abs(low), 1e-6) * 1e-3)
        edges = [low + (high - low) * at / count for at in range(count + 1)]
    counts = [0] * count
    for value in ordered:
        counts[max(0, min(count - 1, bisect_right(edges, value) - 1))] += 1
    return Bins(tuple(edges), tuple(counts), log)


def token_rate(rows: Sequence[Timed], span_s: float) -> Bins:
    """Output tokens by the second in which their chunk arrived; a chunk counts for its share of its answer's tokens."""
    count = max(1, min(MOST_BINS, int(span_s / 0.25)))
    width = max(span_s, 1e-9) / count
    counts = [0.0] * count
    for row in rows:
        if row.ttft_s is None:
            continue
        arrivals = list(accumulate(row.itl_s, initial=row.sent_s + row.ttft_s))
        for arrival in arrivals:
            counts[max(0, min(count - 1, int(arrival / width)))] += row.completion_tokens / len(arrivals)
    return Bins(tuple(width * at for at in range(count + 1)), tuple(round(c / width) for c in counts))
