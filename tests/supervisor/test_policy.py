"""The policy: bounds, escalation and what an end means, with numbers instead of clocks."""

from __future__ import annotations

import pytest

from trimtab.messages import msg
from trimtab.supervisor.policy import (
    AskToEnd,
    Enter,
    Exited,
    ExitStatus,
    Kill,
    Limits,
    Situation,
    StopAsked,
    Tick,
    decide,
    describe,
)
from trimtab.supervisor.states import State

LIMITS = Limits(start_s=100, stop_s=30)


def test_start_is_bounded() -> None:
    loading = Situation(State.LOADING, launched_at=1000)
    assert decide(loading, Tick(), 1100, LIMITS) == []
    (action,) = decide(loading, Tick(), 1101, LIMITS)
    assert isinstance(action, Kill)
    assert str(action.reason) == "gave no token within 100 s of its start"


def test_a_timed_out_start_names_the_bound_and_not_the_signal() -> None:
    killed = Situation(State.LOADING, killed_for=msg("too slow"))
    assert decide(killed, Exited(ExitStatus(-9)), 5, LIMITS) == [Enter(State.FAILED_TO_START, msg("too slow"))]
    assert decide(killed, Tick(), 1e9, LIMITS) == []


def test_stop_asks_then_kills_after_the_bound() -> None:
    ready = Situation(State.READY)
    first = decide(ready, StopAsked(1), 50, LIMITS)
    assert [type(action) for action in first] == [Enter, AskToEnd]
    draining = ready.after(StopAsked(1), first, 50)
    assert draining.state is State.DRAINING
    assert decide(draining, Tick(), 80, LIMITS) == []
    (kill,) = decide(draining, Tick(), 80.1, LIMITS)
    assert isinstance(kill, Kill)


def test_death_before_ready_is_a_failed_start_and_after_it_a_crash() -> None:
    for state, end in ((State.STARTING, State.FAILED_TO_START), (State.READY, State.CRASHED)):
        (action,) = decide(Situation(state), Exited(ExitStatus(0)), 1, LIMITS)
        assert isinstance(action, Enter)
        assert action.state is end


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "exit code 1"),
        (0, "exit code 0"),
        (-9, "SIGKILL"),
        (137, "SIGKILL"),
        (-11, "SIGSEGV"),
        (200, "exit code 200"),
    ],
)
def test_exit_statuses_are_named(code: int, words: str) -> None:
    assert words in str(describe(ExitStatus(code)))
