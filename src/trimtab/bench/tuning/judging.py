"""Whether one launch is faster than another: the rule by which a change is kept, dropped or measured again. Pure.

A start is measured in rounds. The relative spread of rounds is pooled over all starts; that of starts of the same
launch too, once there are any. A mean of n rounds errs by the spread of rounds over the root of n, and never by less
than the spread of starts. The bound of a difference is Student's 99% quantile times both errors together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from typing import Literal

import msgspec

START_ERROR = 0.005
"""What two starts of the same launch differ by at least: memory lies elsewhere, the machine is as warm as it is."""
LEAST_GAIN = 0.01
"""A gain below it is not worth another flag, however sure it is."""
_QUANTILES = (63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)
_QUANTILES_FROM = ((30, 2.75), (20, 2.85), (16, 2.92))

Starts = tuple[tuple[float, ...], ...]
"""The rounds of each start of one launch, scores of which more is better."""
Verdict = Literal["keep", "drop", "unclear"]


class Noise(msgspec.Struct, frozen=True):
    """Relative spreads (standard deviations) with the degrees of freedom behind them."""

    rounds: float
    rounds_freedom: int
    starts: float = START_ERROR


class Comparison(msgspec.Struct, frozen=True):
    """`gain` of a launch over another, relative; what lies within `bound` of it is noise."""

    gain: float
    bound: float
    verdict: Verdict


def noise(launches: Sequence[Starts]) -> Noise:
    """The spreads over everything that was measured."""
    within = [_squares(rounds) for starts in launches for rounds in starts]
    freedom = sum(n for _, n in within)
    spread = sqrt(sum(s for s, _ in within) / freedom) if freedom else 0.0
    between = [_squares([_mean(rounds) for rounds in starts]) for starts in launches]
    repeated = sum(n for _, n in between)
    apart = sqrt(sum(s for s, _ in between) / repeated) if repeated else 0.0
    return Noise(spread, freedom, max(START_ERROR, apart))


def compare(candidate: Starts, best: Starts, seen: Noise) -> Comparison:
    """Whether `candidate` is faster than `best`: kept when the gain is beyond the bound, unclear when it may be."""
    low = score(best)
    gain = score(candidate) / low - 1 if low > 0 else (1.0 if score(candidate) > 0 else 0.0)
    bound = quantile(seen.rounds_freedom) * hypot(_error(candidate, seen), _error(best, seen))
    if gain < LEAST_GAIN:
        return Comparison(gain, bound, "drop")
    return Comparison(gain, bound, "keep" if gain > bound else "unclear")


def score(starts: Starts) -> float:
    """The mean over starts of the mean over rounds."""
    return _mean([_mean(rounds) for rounds in starts])


def quantile(freedom: int) -> float:
    """Student's, two-sided 99%; that of one degree where there is none."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[max(1, freedom) - 1]
    return next((q for least, q in _QUANTILES_FROM if freedom >= least), _QUANTILES[-1])


def _error(starts: Starts, seen: Noise) -> float:
    """Relative standard error of the score."""
    each = [max(seen.rounds / sqrt(len(rounds)), seen.starts) for rounds in starts]
    return sqrt(sum(e * e for e in each)) / len(each)


def _squares(values: Sequence[float]) -> tuple[float, int]:
    """Sum of squared relative deviations from the mean, and degrees of freedom."""
    middle = _mean(values)
    if len(values) < 2 or middle <= 0:
        return 0.0, 0
    return sum((v / middle - 1) ** 2 for v in values), len(values) - 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
