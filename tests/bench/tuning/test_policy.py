"""The search on simulated surfaces: what it finds, how many starts it takes, and that it goes on where it was."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.tuning.surface import optimum, simulate
from trimtab.bench.tuning.policy import MAX_STARTS, Next, Result, Stop, search
from trimtab.bench.tuning.space import Knob, Point, Space

SEQS = Knob("max-num-seqs", ("2", "4", "8", "16", "32", "64"))
BATCH = Knob("max-num-batched-tokens", ("512", "1024", "2048", "4096", "8192"))
MODE = Knob("performance-mode", ("balanced", "interactivity", "throughput"), ordered=False)
EAGER = Knob("enforce-eager", (None, "true"), ordered=False)
GRID = Space((SEQS, BATCH, EAGER), (2, 2, 0))  # 60 starts
SMALL = Space((Knob("max-num-seqs", ("2", "4", "8", "16")), Knob("max-num-batched-tokens", ("512", "1024", "2048")),
               EAGER), (2, 2, 0))  # fmt: skip  # 24


def hill(peak: tuple[int, ...], steep: float = 0.3) -> object:
    """One peak, falling off on every side; flags act each for itself."""

    def surface(point: Point) -> float:
        value = 1000.0
        for at, top in zip(point, peak, strict=True):
            value *= 1 / (1 + steep * abs(at - top))
        return value

    return surface


peaks = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 1))


@settings(max_examples=60, deadline=None)
@given(peak=peaks, seed=st.integers(0, 2**30), steep=st.floats(0.05, 1.0))
def test_finds_the_peak_within_two_percent(peak: tuple[int, ...], seed: int, steep: float) -> None:
    surface = hill(peak, steep)
    done = simulate(GRID, surface, seed)  # type: ignore[arg-type]
    assert surface(done.found.best) >= 0.98 * optimum(GRID, surface)  # type: ignore[operator, arg-type]


@settings(max_examples=60, deadline=None)
@given(peak=peaks, seed=st.integers(0, 2**30), steep=st.floats(0.05, 1.0))
def test_takes_a_third_of_the_grid_at_most(peak: tuple[int, ...], seed: int, steep: float) -> None:
    assert simulate(GRID, hill(peak, steep), seed).starts <= GRID.size / 3  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**30))
def test_noise_alone_is_rarely_kept(seed: int) -> None:
    """On a flat surface nothing gains: whatever is kept, is kept by chance, and the search ends all the same."""
    done = simulate(GRID, lambda point: 1000.0, seed, rounds=0.03)
    assert done.starts <= GRID.size / 3
    assert isinstance(done.found.step, Stop)


def test_on_a_flat_surface_few_searches_keep_anything() -> None:
    kept = [simulate(GRID, lambda point: 1000.0, seed).found.best != GRID.start for seed in range(200)]
    assert mean(kept) < 0.1


def test_a_saturating_surface_is_left_at_the_first_value_that_is_enough() -> None:
    """More sequences than the card can use gain nothing, and what gains nothing is not taken."""
    done = simulate(GRID, lambda p: min(p[0], 3) * 100.0 + 100, 7)
    assert done.found.best == (3, 2, 0)


def test_flags_that_work_together_are_found_by_going_round_again() -> None:
    """A larger batch gains only once more sequences run."""
    done = simulate(Space((BATCH, SEQS), (1, 0)), lambda p: 1000 + 100 * p[0] * p[1], 3)
    assert done.found.best == (4, 5)


def test_flags_that_gain_only_together_are_not_found() -> None:
    """The price of one change at a time, which docs/tuning.md states."""
    done = simulate(Space((BATCH, SEQS), (1, 1)), lambda p: 1000 + 200 * min(p[0], p[1]), 3)
    assert done.found.best == (1, 1)


def test_what_dies_is_dropped_and_the_search_goes_on() -> None:
    done = simulate(SMALL, lambda p: None if p[1] < 2 else 100.0 * (p[0] + 1), 1)
    assert done.found.best == (3, 2, 0)
    died = [one for one in done.found.decisions if one.kind == "failed"]
    assert [one.point for one in died] == [(3, 1, 0)]
    assert not any(one.kept for one in died)


def test_a_plan_that_dies_ends_the_search() -> None:
    done = simulate(SMALL, lambda p: None, 1)
    assert done.found.step == Stop(SMALL.start, failed=True)
    assert done.starts == 1


def test_every_prefix_of_the_results_asks_for_the_next_of_them() -> None:
    """An interrupted search goes on with the start that was next, whenever it was interrupted."""
    done = simulate(GRID, hill((5, 0, 1)), 11)  # type: ignore[arg-type]
    for count, result in enumerate(done.results):
        step = search(GRID, done.results[:count]).step
        assert isinstance(step, Next)
        assert step.point == result.point
    assert search(GRID, done.results) == done.found


def test_later_results_change_no_decision() -> None:
    done = simulate(GRID, hill((5, 4, 1), 0.02), 5, rounds=0.02)  # type: ignore[arg-type]
    for count in range(len(done.results)):
        before = search(GRID, done.results[:count]).decisions
        assert done.found.decisions[: len(before)] == before


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**30), rounds=st.floats(0.0, 0.2))
def test_no_launch_is_started_more_than_twice(seed: int, rounds: float) -> None:
    done = simulate(GRID, hill((4, 1, 1), 0.05), seed, rounds=rounds)  # type: ignore[arg-type]
    points = [one.point for one in done.results]
    assert all(points.count(point) <= MAX_STARTS for point in points)


def test_each_start_differs_from_the_best_in_one_flag() -> None:
    done = simulate(GRID, hill((5, 0, 1)), 2)  # type: ignore[arg-type]
    for one in done.found.decisions[1:]:
        assert len(GRID.changes(one.base, one.point)) == 1 or one.kept is False


def test_results_of_another_space_are_refused() -> None:
    with pytest.raises(ValueError, match="stands where"):
        search(SMALL, [Result((0, 0, 0), "measured", (1.0, 1.0))])
