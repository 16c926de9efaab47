"""The policy: bounds, escalation and what an end means, with numbers instead of clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trimtab.engine.logs import Phase
from trimtab.messages import msg
from trimtab.supervisor.happenings import (
    Action,
    Answered,
    AskToEnd,
    Drain,
    Drained,
    Enter,
    Examine,
    Examined,
    Exited,
    ExitStatus,
    Happening,
    Kill,
    Launch,
    Launched,
    Limits,
    PhaseSeen,
    Settle,
    Settled,
    Sign,
    StopAsked,
    Tick,
    Unwell,
    Well,
)
from trimtab.supervisor.policy import Situation, decide, describe, wait_before
from trimtab.supervisor.states import State

LIMITS = Limits(
    start_s=100, drain_s=20, stop_s=30, dead_s=15, silent_s=60, max_restarts=3, window_s=3600, first_wait_s=2,
    longest_wait_s=30, stable_s=600, max_steps=2,
)  # fmt: skip


class Life:
    """A server's life without processes: what happens, when, and what the policy answers."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits, self.clock, self.situation = limits, 1000.0, Situation(State.INSTALLING)
        self.states: list[str] = []
        self.actions: list[Action] = []

    def see(self, happening: Happening, after: float = 0.0) -> list[Action]:
        self.clock += after
        self.actions = decide(self.situation, happening, self.clock, self.limits)
        self.situation = self.situation.after(happening, self.actions, self.clock)
        self.states += [action.state for action in self.actions if isinstance(action, Enter)]
        return self.actions

    def kinds(self) -> list[type]:
        return [type(action) for action in self.actions]

    def reason(self) -> str:
        return next(str(action.reason) for action in reversed(self.actions) if isinstance(action, Enter))

    def serve(self) -> Life:
        self.see(Launched())
        self.see(Answered(), 10)
        return self

    def die(self, found: Examined | None = None, code: int = 1, after: float = 1) -> None:
        assert self.see(Exited(ExitStatus(code)), after) == [Examine()]
        self.see(found or Examined())

    def start_again(self, after: float = 60) -> None:
        assert self.see(Tick(), after) == [Settle()]
        assert self.see(Settled()) == [Launch()]
        self.see(Launched())


def test_start_is_bounded() -> None:
    life = Life()
    life.see(Launched())
    life.see(PhaseSeen(Phase.LOADING), 50)
    assert life.see(Tick(), 50) == []
    life.see(Tick(), 1)
    assert life.kinds() == [Kill]
    life.see(Exited(ExitStatus(-9)), 1)
    life.see(Examined())
    assert (life.states[-1], life.reason()) == ("failed_to_start", "gave no token within 100 s of its start")
    assert life.situation.over
    assert life.see(Tick(), 1e9) == []


def test_a_start_that_never_worked_is_tried_again_only_when_another_may_help() -> None:
    for permanent, states in ((None, []), (True, []), (False, ["backing_off"])):
        life = Life()
        life.see(Launched())
        life.die(Examined(permanent=permanent))
        assert life.states == ["starting", "failed_to_start", *states]


def test_a_crash_in_service_is_restarted_after_a_wait() -> None:
    life = Life().serve()
    life.die(code=-9)
    assert life.states[2:] == ["crashed", "backing_off"]
    assert life.reason() == "starts again in 2 s (restart 1 of 3)"
    assert life.see(Tick(), 1.9) == []
    life.start_again(0.2)
    life.see(Answered(), 10)
    assert life.situation.state is State.READY


def test_waits_double_up_to_a_bound_and_begin_anew_after_a_stable_time() -> None:
    assert [wait_before(n, LIMITS) for n in (1, 2, 3, 4, 5, 2000)] == [2, 4, 8, 16, 30, 30]
    life = Life().serve()
    life.die()
    life.start_again()
    life.die()
    assert "in 4 s" in life.reason()
    life.start_again()
    life.see(Answered())
    life.die(after=599)
    assert "in 8 s" in life.reason()
    life = Life().serve()
    life.die()
    life.start_again()
    life.see(Answered())
    life.die(after=600)
    assert "in 2 s" in life.reason()


def test_a_crash_loop_is_given_up_with_its_cause() -> None:
    life = Life().serve()
    for _ in range(3):
        life.die()
        life.start_again()
        life.see(Answered())
    life.die(Examined(cause=msg("CUDA out of memory")))
    assert life.states[-2:] == ["crashed", "given_up"]
    assert life.reason() == "ended again after 3 restarts within 60 minutes: CUDA out of memory"
    assert life.situation.over


def test_restarts_before_the_window_do_not_count() -> None:
    life = Life().serve()
    for _ in range(6):
        life.die(after=1800)
        life.start_again()
        life.see(Answered())
    assert life.situation.state is State.READY


def test_a_restart_that_must_fail_is_given_up_at_once() -> None:
    life = Life().serve()
    life.die()
    life.start_again()
    life.die(Examined(permanent=True, cause=msg("no such model")))
    assert life.states[-2:] == ["failed_to_start", "given_up"]
    assert life.reason() == "no start mends it: no such model"


def test_without_a_budget_the_first_crash_is_the_end() -> None:
    life = Life(Limits()).serve()
    life.die()
    assert (life.states[-1], life.situation.over) == ("crashed", True)


def test_no_restart_is_spent_while_others_hold_the_cards() -> None:
    life = Life(replace(LIMITS, taken_s=100)).serve()
    life.die()
    assert life.see(Tick(), 60) == [Settle()]
    assert life.see(Settled(msg("held by 12")), 30) == [Settle()]
    assert life.see(Settled(msg("held by 12")), 90) == [Settle()]
    assert life.see(Settled()) == [Launch()]
    life.see(Launched())
    life.die()
    assert life.see(Tick(), 60) == [Settle()]
    assert life.see(Settled(msg("held by 12")), 30) == [Settle()]  # a new wait
    life.see(Settled(msg("held by 12")), 101)
    assert life.states[-1] == State.GIVEN_UP
    assert life.reason() == "not started again: held by 12"


def test_stop_while_backing_off_is_immediate_and_a_late_settled_starts_nothing() -> None:
    life = Life().serve()
    life.die()
    life.see(Tick(), 5)
    life.see(StopAsked(1))
    assert life.states[-1] == "stopped"
    assert life.see(Settled()) == []


def test_stop_while_the_end_is_examined_starts_nothing_again() -> None:
    life = Life().serve()
    life.see(Exited(ExitStatus(1)))
    assert life.see(StopAsked(1)) == []
    life.see(Examined(permanent=False))
    assert (life.states[-1], life.situation.over) == ("crashed", True)


def test_one_step_back_and_no_more_than_allowed() -> None:
    life = Life()
    life.see(Launched())
    for number in (1, 2):
        life.die(Examined(permanent=True, step=msg("max-model-len 8192 -> 4096")))
        assert life.states[-2:] == ["failed_to_start", "stepping_back"]
        life.start_again(0)
        assert life.situation.steps == number
    life.die(Examined(permanent=True, step=msg("max-model-len 4096 -> 2048"), cause=msg("no KV blocks")))
    assert life.states[-2:] == ["failed_to_start", "given_up"]
    assert life.reason() == "failed again after 2 changed parameters: no KV blocks"


def test_steps_are_taken_only_where_allowed() -> None:
    life = Life(Limits(max_restarts=3))
    life.see(Launched())
    life.die(Examined(step=msg("a change")))
    assert life.states[-1] == "failed_to_start"


def test_stop_drains_then_asks_then_kills() -> None:
    life = Life().serve()
    life.see(StopAsked(1))
    assert life.kinds() == [Enter, Drain]
    assert life.see(Tick(), 20) == []
    assert life.see(Tick(), 0.1) == [AskToEnd()]
    assert life.see(Drained()) == []
    assert life.see(Tick(), 30) == []
    life.see(Tick(), 0.1)
    assert life.kinds() == [Kill]
    life.see(Exited(ExitStatus(-9)))
    assert (life.states[-1], life.reason()) == ("stopped", "did not end within 30 s of being asked")


def test_a_drained_engine_is_asked_to_end_once() -> None:
    life = Life().serve()
    life.see(StopAsked(1))
    assert life.see(Drained(), 3) == [AskToEnd()]
    assert life.see(Drained()) == []
    life.see(Exited(ExitStatus(0)))
    assert (life.states[-1], life.reason()) == ("stopped", "ended as asked")


def test_an_engine_that_drains_by_itself_is_asked_at_once() -> None:
    life = Life(replace(LIMITS, engine_drain_s=20)).serve()
    life.see(StopAsked(1))
    assert life.kinds() == [Enter, AskToEnd, Drain]
    assert life.see(Drained(known=False), 1) == []  # without /metrics nobody knows
    assert life.see(Tick(), 48.9) == []
    life.see(Tick(), 0.2)
    assert life.kinds() == [Kill]
    life.see(Exited(ExitStatus(-9)))
    assert (life.states[-1], life.reason()) == ("stopped", "did not end within 50 s of being asked")


def test_its_requests_done_it_has_little_time_to_end() -> None:
    life = Life(replace(LIMITS, engine_drain_s=20, rest_s=3)).serve()
    life.see(StopAsked(1))
    assert life.see(Drained(), 5) == []
    assert life.see(Drained(), 2) == []
    assert life.see(Tick(), 1) == []
    life.see(Tick(), 0.1)
    assert life.kinds() == [Kill]
    life.see(StopAsked(2))
    assert life.actions == []
    life.see(Exited(ExitStatus(-9)))
    assert life.reason() == "its requests were done, and it did not end within 3 s"


def test_a_second_request_cuts_off_what_the_engine_drains() -> None:
    life = Life(replace(LIMITS, engine_drain_s=20)).serve()
    life.see(StopAsked(1))
    life.see(StopAsked(2), 1)
    assert life.kinds() == [Kill]


def test_an_engine_that_does_not_serve_is_asked_at_once() -> None:
    loading = Situation(State.LOADING)
    assert [type(action) for action in decide(loading, StopAsked(1), 0, LIMITS)] == [Enter, AskToEnd]
    life = Life().serve()
    life.see(Unwell(Sign.SILENT, msg("silent")))
    life.see(StopAsked(1))
    assert life.kinds() == [Enter, AskToEnd]


@pytest.mark.parametrize(("sign", "bound_s"), [(Sign.SILENT, 60), (Sign.DEAD, 15)])
def test_a_degraded_engine_is_killed_after_its_bound_and_restarted(sign: Sign, bound_s: float) -> None:
    life = Life().serve()
    life.see(Unwell(sign, msg("not well")), 5)
    assert life.states[-1] == "degraded"
    assert life.see(Unwell(sign, msg("not well")), bound_s - 1) == []
    assert life.see(Unwell(sign, msg("not well")), 1) == [Kill(msg("not well"))]
    assert life.see(Unwell(sign, msg("not well")), 1) == []
    life.die(code=-9)
    assert life.states[-2:] == ["crashed", "backing_off"]


def test_a_degraded_engine_that_recovers_is_ready_again_and_its_bound_begins_anew() -> None:
    life = Life().serve()
    life.see(Unwell(Sign.SILENT, msg("silent")))
    life.see(Well(), 50)
    assert life.states[-2:] == ["degraded", "ready"]
    life.see(Unwell(Sign.SILENT, msg("silent")), 10)
    assert life.kinds() == [Enter]
    assert life.see(Unwell(Sign.SILENT, msg("silent")), 59) == []


def test_stalled_is_doubt_and_hung_is_the_end() -> None:
    life = Life().serve()
    life.see(Unwell(Sign.STALLED, msg("3 requests run")))
    assert life.kinds() == [Enter]
    assert life.see(Unwell(Sign.STALLED, msg("3 requests run")), 1e4) == []
    life.see(Unwell(Sign.HUNG, msg("no token")))
    assert life.kinds() == [Kill]
    life.die(code=-9)
    assert "no token" in [str(a.reason) for a in life.actions if isinstance(a, Enter)]


def test_what_comes_late_from_a_dead_engine_changes_nothing() -> None:
    life = Life().serve()
    life.see(Exited(ExitStatus(1)))
    assert life.see(Unwell(Sign.SILENT, msg("silent"))) == []
    life.see(Examined())
    assert life.see(Answered()) == []
    assert life.see(Drained()) == []


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
