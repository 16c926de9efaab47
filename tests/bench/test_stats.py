"""The figures of a run against values worked out by hand or drawn from a known distribution."""

from __future__ import annotations

import random

import pytest

from trimtab.bench.stats import Targets, Timed, distribution, percentile, share, summary


def row(number: int, ttft: float, e2e: float, tokens: int, trouble: str | None = None) -> Timed:
    gaps = (((e2e - ttft) / (tokens - 1),) * (tokens - 1)) if tokens > 1 else ()
    return Timed(number, 0.0, 0.0, 0.001, 10, tokens, True, ttft, e2e, gaps, 200, trouble)


def test_percentiles_are_linear_between_neighbours() -> None:
    values = [float(v) for v in range(1, 11)]
    assert percentile(values, 50).value == 5.5
    assert percentile(values, 90).value == pytest.approx(9.1)
    assert percentile([3.0], 99).value == 3.0


def test_a_percentile_of_few_values_has_no_interval() -> None:
    assert percentile([1.0, 2.0, 3.0], 99).high is None


def test_the_interval_of_a_percentile_holds_the_truth_in_95_of_100_draws() -> None:
    source = random.Random(5)
    hits = 0
    for _ in range(400):
        found = percentile(sorted(source.random() for _ in range(500)), 90)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.9 <= found.high
    assert 0.92 <= hits / 400 <= 0.99


def test_of_nothing_there_is_no_distribution() -> None:
    assert distribution([]) is None


def test_a_summary_counts_whole_answers_and_names_the_others() -> None:
    rows = [row(0, 0.1, 1.1, 11), row(1, 0.2, 1.2, 11), row(2, 0.1, 0.1, 1), row(3, 0.5, 0.6, 2, "stream cut")]
    found = summary(rows, 2.0, Targets(ttft_s=0.15))
    assert (found.finished, found.failed) == (3, {"stream cut": 1})
    assert found.output_tokens_s == pytest.approx(23 / 2)
    assert found.tpot is not None
    assert found.tpot.mean.value == pytest.approx(0.1)
    assert found.tpot.count == 2  # an answer of one token has none
    assert found.goodput_s == pytest.approx(2 / 2)
    assert found.good_share is not None
    assert found.good_share.value == pytest.approx(0.5)


def test_wilsons_interval_stays_within_0_and_1() -> None:
    assert share(0, 10).low == 0.0
    assert share(0, 10).high == pytest.approx(0.2775, abs=1e-3)
    assert share(10, 10).high == 1.0
