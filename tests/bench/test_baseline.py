"""What got worse beyond its spread is told, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from trimtab.bench.baseline import SCHEMA, Saved, SavedCriterion, compare, read_saved, told, worse
from trimtab.bench.criterion import Criterion, Figure, Verdict


def saved(*figures: Figure, verdict: str = "passed", name: str = "ramp") -> Saved:
    return Saved(SCHEMA, "http://h/v1", "demo", (SavedCriterion(name, verdict, figures),))


def now(*figures: Figure, verdict: Verdict = "passed", name: str = "ramp") -> list[Criterion]:
    return [Criterion(verdict, figures=figures, name=name)]


def rate(value: float, spread: float | None = None) -> Figure:
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return Figure("rate", value, "tokens/s", "more", low, high)


def wait(value: float, spread: float | None = None) -> Figure:
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return Figure("wait", value, "s", "less", low, high)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (rate(100, 5), rate(60, 5), "worse"),
        (rate(100, 5), rate(140, 5), "better"),
        (rate(100, 5), rate(92, 1), "same"),  # apart, but less than a tenth
        (rate(100, 30), rate(60, 20), "same"),  # the spreads meet
        (rate(100), rate(70), "same"),  # measured once each: 25% either way
        (rate(100), rate(50), "worse"),
        (wait(1.0, 0.1), wait(1.5, 0.1), "worse"),
        (wait(1.0, 0.1), wait(0.5, 0.1), "better"),
        (wait(0.001, 0.0), wait(0.015, 0.0), "same"),  # 14 ms are nothing
        (wait(0.0, 0.0), wait(0.0, 0.0), "same"),
    ],
)
def test_a_figure_beside_its_baseline(before: Figure, after: Figure, outcome: str) -> None:
    changes = compare(now(after), [saved(before)], 0.1)
    assert [c.outcome for c in changes] == ["same", outcome]
    assert bool(worse(changes)) is (outcome == "worse")


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("passed", "failed", "worse"),
        ("passed", "not_applicable", "worse"),
        ("passed", "not_measured", "not compared"),
        ("failed", "passed", "better"),
        ("failed", "failed", "same"),
        ("not_applicable", "failed", "worse"),
        ("not_measured", "passed", "not compared"),
    ],
)
def test_a_verdict_beside_its_baseline(before: str, after: Verdict, outcome: str) -> None:
    assert [c.outcome for c in compare(now(verdict=after), [saved(verdict=before)], 0.1)] == [outcome]


def test_several_baselines_make_the_spread_wider() -> None:
    runs = [saved(rate(100, 2)), saved(rate(80, 2)), saved(rate(120, 2))]
    assert not worse(compare(now(rate(79, 2)), runs, 0.1))
    assert worse(compare(now(rate(60, 2)), runs, 0.1))


def test_what_the_baseline_lacks_is_not_compared() -> None:
    changes = compare(now(rate(1), name="needle"), [saved(rate(100))], 0.1)
    assert [(c.criterion, c.outcome) for c in changes] == [("needle", "not compared")]


def test_a_change_names_both_numbers_and_their_spread() -> None:
    change = worse(compare(now(rate(60, 5)), [saved(rate(100, 5))], 0.1))[0]
    assert str(told(change)) == "ramp: rate got worse: 60 tokens/s (55 to 65), was 100 tokens/s (95 to 105)"


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"\xff", b'{"schema": "trimtab.verify/1", "url": "", "model": "", "criteria": []}']
)
def test_what_is_no_baseline_is_refused(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_saved(text)
