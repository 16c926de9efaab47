"""Paired statistics against worked values."""

from __future__ import annotations

import random

import pytest

from trimtab.bench.comparing.paired import paired, wilcoxon


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 2, 3, 4, 5], 0.0625),  # all signs alike: 2 of 32
        ([1, 2, 3, 4, -5], 0.625),  # 10 of 32 sets of ranks sum to 5 or less
        ([0.0, 0.0], 1.0),
        ([1, -1], 1.0),
        ([8, 6, 4, -2, 10, 12, 14, 16], 2 * 2 / 256),  # the negative rank sum is 1: ways 0 and 1
    ],
)
def test_signed_ranks_are_exact_for_few_pairs(differences: list[float], p: float) -> None:
    assert wilcoxon(differences) == pytest.approx(p)


def test_the_approximation_meets_the_exact_value() -> None:
    source = random.Random(4)
    thirty = [source.gauss(0.3, 1) for _ in range(30)]
    more = [*thirty, 0.0001]
    assert wilcoxon(more) == pytest.approx(wilcoxon(thirty), abs=0.03)


def test_a_change_is_seen_and_noise_is_not() -> None:
    source = random.Random(1)
    base = [source.uniform(1, 9) for _ in range(40)]
    slower = paired([(x, x * source.gauss(1.1, 0.03)) for x in base], 0)
    same = paired([(x, x * source.gauss(1.0, 0.03)) for x in base], 0)
    assert slower is not None
    assert same is not None
    assert slower.differs
    assert slower.change.value == pytest.approx(0.1, abs=0.02)
    assert (slower.change.low or 0) < slower.change.value < (slower.change.high or 0)
    assert not same.differs


def test_noise_is_called_a_change_about_as_rarely_as_promised() -> None:
    source = random.Random(2)
    found = 0
    for _ in range(60):
        one = paired([(source.gauss(5, 1), source.gauss(5, 1)) for _ in range(12)], 0)
        found += one is not None and one.differs
    assert found <= 8


def test_few_pairs_have_no_interval() -> None:
    one = paired([(1.0, 2.0), (1.0, 2.0)], 0)
    assert one is not None
    assert (one.change.value, one.change.low, one.p, one.differs) == (1.0, None, None, False)
    assert paired([], 0) is None
    assert paired([(0.0, 1.0)], 0) is None
