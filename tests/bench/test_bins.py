"""What pictures are drawn of."""

from __future__ import annotations

import random

import pytest

from trimtab.bench.bins import MOST_BINS, spread, token_rate
from trimtab.bench.stats import Timed


@pytest.mark.parametrize("seed", range(40))
def test_every_value_is_in_one_bin(seed: int) -> None:
    source = random.Random(seed)
    values = [source.choice((0.0, 1e-9, source.random(), 1e6 * source.random())) for _ in range(source.randint(1, 300))]
    bins = spread(values)
    assert sum(bins.counts) == len(values)
    assert len(bins.counts) <= MOST_BINS
    assert list(bins.edges) == sorted(bins.edges)
    assert all(width > 0 for width in bins.widths)


def test_a_long_tail_is_put_into_growing_bins() -> None:
    bins = spread([0.0] * 5 + [1.0] * 100 + [1000.0])
    assert bins.log
    assert bins.edges[0] > 0
    assert bins.counts[-1] == 1
    assert not spread([1.0, 2.0, 3.0]).log


def test_tokens_count_in_the_second_of_their_chunk() -> None:
    row = Timed(0, 0.0, 0.0, 0.0, 10, 8, True, ttft_s=0.5, e2e_s=3.5, itl_s=(1.0, 1.0, 1.0), status=200)
    bins = token_rate([row], 4.0)
    rates = [sum(bins.counts[at : at + 4]) / 4 for at in range(0, 16, 4)]  # bins of a quarter of a second
    assert rates == pytest.approx([2, 2, 2, 2])  # four chunks of two tokens


def test_a_run_without_an_answer_has_a_rate_of_zero() -> None:
    assert set(token_rate([], 0.0).counts) == {0}
