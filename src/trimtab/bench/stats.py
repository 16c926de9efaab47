"""Figures of many requests: means and percentiles with 95% confidence, throughput, goodput. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, floor, sqrt

import msgspec

Z = 1.96  # of a 95% interval
PERCENTILES = (50, 90, 95, 99)
CUT = "cut at the end"  # of the time of the run: no failure of the server's


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its 95% interval; None where so few values say nothing of it."""

    value: float
    low: float | None = None
    high: float | None = None


class Distribution(msgspec.Struct, frozen=True):
    """Of `count` values in seconds."""

    count: int
    mean: Estimate
    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    most: float


def distribution(values: Sequence[float]) -> Distribution | None:
    """Mean and percentiles of `values`; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    p50, p90, p95, p99 = (percentile(ordered, q) for q in PERCENTILES)
    return Distribution(len(ordered), mean(ordered), p50, p90, p95, p99, ordered[-1])


def mean(values: Sequence[float]) -> Estimate:
    """The mean, with the interval of the normal approximation from 10 values on."""
    count = len(values)
    middle = sum(values) / count
    if count < 10:
        return Estimate(middle)
    half = Z * sqrt(sum((v - middle) ** 2 for v in values) / (count - 1) / count)
    return Estimate(middle, middle - half, middle + half)


def percentile(ordered: Sequence[float], q: float) -> Estimate:
    """Percentile `q` of sorted values, linear between neighbours as numpy's; interval by order statistics."""
    count, share = len(ordered), q / 100
    place = share * (count - 1)
    below = floor(place)
    above = min(below + 1, count - 1)
    value = ordered[below] + (ordered[above] - ordered[below]) * (place - below)
    half = Z * sqrt(count * share * (1 - share))
    first, last = floor(count * share - half) - 1, ceil(count * share + half)
    if first < 0 or last > count - 1:
        return Estimate(value)
    return Estimate(value, ordered[first], ordered[last])


class Timed(msgspec.Struct, frozen=True):
    """One request as it went; seconds. `trouble` is its kind, None when the answer came whole."""

    id: int
    sent_s: float  # after the start of the run
    late_s: float  # how much after its time it was sent (open loop)
    connect_s: float
    prompt_tokens: int
    completion_tokens: int
    counted: bool  # whether the server told the tokens
    ttft_s: float | None = None  # from sending to the first chunk with a choice in it
    e2e_s: float | None = None  # from sending to the last such chunk
    itl_s: tuple[float, ...] = ()  # between such chunks
    status: int | None = None
    trouble: str | None = None

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token after the first."""
        if self.ttft_s is None or self.e2e_s is None or self.completion_tokens < 2:
            return None
        return (self.e2e_s - self.ttft_s) / (self.completion_tokens - 1)


class Targets(msgspec.Struct, frozen=True):
    """What a request must keep to count as good; seconds, None: no bound."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def kept(self, one: Timed) -> bool:
        """Whether `one` came whole and within every bound."""
        pairs = ((self.ttft_s, one.ttft_s), (self.tpot_s, one.tpot_s), (self.e2e_s, one.e2e_s))
        return one.trouble is None and all(bound is None or (v is None or v <= bound) for bound, v in pairs)


class Summary(msgspec.Struct, frozen=True):
    """A run in figures. Rates are per second of `span_s`, from the first request sent to the last answer's end."""

    span_s: float
    finished: int
    failed: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    requests_s: float
    output_tokens_s: float
    total_tokens_s: float
    ttft: Distribution | None
    tpot: Distribution | None
    itl: Distribution | None
    e2e: Distribution | None
    late: Distribution | None
    goodput_s: float | None = None  # good requests a second
    good_share: Estimate | None = None
    cut: int = 0  # that ran when the time was over: their tokens count, their times do not
    uncounted: int = 0  # answers whose tokens the server did not tell: their chunks were counted


def summary(
    rows: Sequence[Timed], span_s: float, targets: Targets | None = None, *, open_loop: bool = False
) -> Summary:
    """The figures of `rows` over `span_s` seconds."""
    whole, cut = [r for r in rows if r.trouble is None], [r for r in rows if r.trouble == CUT]
    judged = len(rows) - len(cut)
    begun = [r for r in cut if r.ttft_s is not None]
    prompt, completion = (sum(r.prompt_tokens for r in whole + begun), sum(r.completion_tokens for r in whole + begun))
    span = max(span_s, 1e-9)
    good = sum(targets.kept(r) for r in rows) if targets is not None else None
    return Summary(
        span_s,
        len(whole),
        dict(Counter(r.trouble for r in rows if r.trouble not in (None, CUT))),
        prompt,
        completion,
        len(whole) / span,
        completion / span,
        (prompt + completion) / span,
        distribution([r.ttft_s for r in whole if r.ttft_s is not None]),
        distribution([t for r in whole if (t := r.tpot_s) is not None]),
        distribution([gap for r in whole for gap in r.itl_s]),
        distribution([r.e2e_s for r in whole if r.e2e_s is not None]),
        distribution([r.late_s for r in rows]) if open_loop else None,
        good / span if good is not None else None,
        share(good, judged) if good is not None and judged else None,
        len(cut),
        sum(not r.counted for r in whole),
    )


def share(part: int, whole: int) -> Estimate:
    """`part` of `whole` with Wilson's interval."""
    p, z2 = part / whole, Z * Z
    middle = (p + z2 / (2 * whole)) / (1 + z2 / whole)
    half = Z / (1 + z2 / whole) * sqrt(p * (1 - p) / whole + z2 / (4 * whole * whole))
    return Estimate(p, max(0.0, middle - half), min(1.0, middle + half))
