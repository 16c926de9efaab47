"""The rule that keeps a change: known cases, and how often it errs on noise alone."""

from __future__ import annotations

import random

import pytest

from trimtab.bench.tuning.judging import LEAST_GAIN, START_ERROR, compare, noise, quantile, score


def test_a_gain_beyond_the_spread_is_kept() -> None:
    best, other = ((100.0, 101.0, 99.0),), ((110.0, 111.0, 109.0),)
    found = compare(other, best, noise([best, other]))
    assert found.verdict == "keep"
    assert found.gain == pytest.approx(0.1)
    assert 0.005 < found.bound < 0.04


def test_a_gain_within_the_spread_is_unclear() -> None:
    best, other = ((100.0, 120.0, 80.0),), ((103.0, 125.0, 81.0),)
    assert compare(other, best, noise([best, other])).verdict == "unclear"


def test_a_loss_is_dropped_at_once() -> None:
    best, other = ((100.0, 120.0, 80.0),), ((99.0, 121.0, 78.0),)
    assert compare(other, best, noise([best, other])).verdict == "drop"


def test_a_sure_gain_that_is_too_small_is_dropped() -> None:
    best, other = ((100.0,) * 6,), ((100.0 * (1 + LEAST_GAIN / 2),) * 6,)
    assert compare(other, best, noise([best, other])).verdict == "drop"


def test_rounds_that_agree_do_not_make_a_start_certain() -> None:
    """Two starts of the same launch differ, however alike the rounds of one are."""
    best, other = ((100.0,) * 9,), ((101.2,) * 9,)
    found = compare(other, best, noise([best, other]))
    assert found.bound > START_ERROR
    assert found.verdict == "unclear"


def test_starts_of_the_same_launch_widen_the_bound() -> None:
    apart = ((100.0, 100.0), (110.0, 110.0))
    assert noise([apart]).starts == pytest.approx(0.067, abs=0.001)


def test_no_answer_at_all_is_no_division_by_zero() -> None:
    nothing, some = ((0.0, 0.0),), ((5.0, 5.0),)
    seen = noise([nothing, some])
    assert compare(some, nothing, seen).gain == 1.0
    assert compare(nothing, nothing, seen).verdict == "drop"


def test_quantiles_fall_to_the_normal_ones() -> None:
    values = [quantile(freedom) for freedom in (0, 1, 2, 5, 15, 16, 20, 30, 1000)]
    assert values == sorted(values, reverse=True)
    assert values[0] == values[1] == 63.66
    assert values[-1] == 2.75


def test_of_launches_that_are_alike_few_are_called_faster() -> None:
    """Two-sided 99%, and of the two sides only one is kept: 0.5%, less for those below the least gain."""
    source, wrong = random.Random(4), 0
    for _ in range(2000):
        a, b = (tuple(source.gauss(100, 2) for _ in range(4)) for _ in range(2))
        wrong += compare((b,), (a,), noise([(a,), (b,)])).verdict == "keep"
    assert wrong / 2000 < 0.01


def test_a_launch_counts_by_the_mean_of_its_starts() -> None:
    assert score(((1.0, 3.0), (6.0,))) == 4.0
