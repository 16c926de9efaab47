"""What a round is worth, and how targets are read."""

from __future__ import annotations

import pytest

from trimtab.bench.stats import Targets, Timed, summary
from trimtab.bench.tuning.objective import Round, read_objective, read_targets, round_of, score, shown, too_short
from trimtab.errors import UsageError

TARGETS = Targets(ttft_s=0.5, tpot_s=0.05)


def timed(number: int, ttft: float, tpot: float) -> Timed:
    return Timed(number, 0.0, 0.0, 0.0, 10, 11, True, ttft, ttft + 10 * tpot, (tpot,) * 10, 200)


def of(*rows: Timed, targets: Targets | None = TARGETS) -> Round:
    return round_of(summary(rows, 2.0, targets), rows, targets, {"preemptions": 1, "most_waiting": None})


def test_a_round_has_the_figures_of_its_rows() -> None:
    found = of(timed(0, 0.4, 0.01), timed(1, 1.0, 0.01))
    assert found.output_tokens_s == 11
    assert (found.good_s, found.good_share) == (0.5, 0.5)
    assert found.nearness == pytest.approx(0.75)
    assert found.server == {"preemptions": 1.0}


def test_more_is_better_for_every_objective() -> None:
    fast, slow = of(timed(0, 0.1, 0.01)), of(timed(0, 1.0, 0.1))
    assert score("latency", fast) > score("latency", slow)
    assert score("goodput", fast) > score("goodput", slow)
    assert shown("latency", score("latency", fast)) == pytest.approx(0.2)


def test_where_nobody_keeps_the_target_nearer_is_better() -> None:
    near, far = of(timed(0, 0.6, 0.01)), of(timed(0, 5.0, 0.01))
    assert near.good_s == far.good_s == 0
    assert score("goodput", near) > score("goodput", far) > 0


def test_one_good_answer_outweighs_all_nearness() -> None:
    assert score("goodput", of(timed(0, 0.5, 0.05))) > 50 * score("goodput", of(timed(0, 0.51, 0.01)))


def test_targets_are_milliseconds() -> None:
    assert read_targets("ttft=500, itl=50ms") == Targets(ttft_s=0.5, tpot_s=0.05)
    assert read_targets(None) is None


@pytest.mark.parametrize("text", ["", "ttft", "ttft=0", "ttft=-1", "ttft=nan", "itl=5,tpot=6", "speed=3", "e2e=1e99"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no target"):
        read_targets(text)


def test_goodput_and_targets_belong_together() -> None:
    assert read_objective("Goodput", TARGETS) == "goodput"
    for text, targets in (("goodput", None), ("latency", TARGETS), ("fast", None)):
        with pytest.raises(UsageError):
            read_objective(text, targets)


@pytest.mark.parametrize(("span", "said"), [(12.0, "--round 33"), (33.0, None)])
def test_a_round_that_cuts_most_answers_off_is_told(span: float, said: str | None) -> None:
    found = Round(requests=1, span_s=span, output_tokens_s=1.0, total_tokens_s=2.0, requests_s=0.1, e2e_mean_s=10.9)
    told = too_short(found)
    assert told is None if said is None else told is not None and said in told.text("en")
