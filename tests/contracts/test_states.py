"""The states of a server: every arrow allowed or refused as drawn, every state reachable and documented."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import pytest

from trimtab.engine.logs import Phase
from trimtab.messages import msg
from trimtab.supervisor import states
from trimtab.supervisor.happenings import (
    Answered,
    Drained,
    Enter,
    Examined,
    Exited,
    ExitStatus,
    Happening,
    Kill,
    Launched,
    Limits,
    PhaseSeen,
    Settled,
    Sign,
    StopAsked,
    Tick,
    Unwell,
    Well,
)
from trimtab.supervisor.policy import Situation, decide
from trimtab.supervisor.states import ARROWS, ENDED, FINAL, INITIAL, RUNNING, STARTUP, WAITING, State, allowed

DRAWN = {
    "installing": "starting stopped failed_to_start",
    "starting": "loading compiling ready draining failed_to_start",
    "loading": "compiling ready draining failed_to_start",
    "compiling": "ready draining failed_to_start",
    "ready": "degraded draining crashed",
    "degraded": "ready draining crashed",
    "draining": "stopped",
    "stopped": "",
    "failed_to_start": "backing_off stepping_back given_up",
    "crashed": "backing_off stepping_back given_up",
    "backing_off": "starting stopped failed_to_start given_up",
    "stepping_back": "starting stopped failed_to_start given_up",
    "given_up": "",
}
HAPPENINGS: tuple[Happening, ...] = (
    Launched(),
    PhaseSeen(Phase.LOADING),
    PhaseSeen(Phase.COMPILING),
    PhaseSeen(Phase.SERVING),
    Answered(),
    Exited(ExitStatus(0)),
    Exited(ExitStatus(1)),
    Exited(ExitStatus(-9)),
    Examined(),
    Examined(permanent=False),
    Examined(permanent=True),
    Examined(step=msg("a step")),
    Settled(),
    Settled(msg("held")),
    Unwell(Sign.SILENT, msg("silent")),
    Unwell(Sign.HUNG, msg("hung")),
    Well(),
    Drained(),
    StopAsked(1),
    StopAsked(2),
    Tick(),
)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(State, State)), ids=lambda s: s.value)
def test_each_arrow_is_allowed_or_refused_as_drawn(old: State, new: State) -> None:
    assert allowed(old, new) == (new.value in DRAWN[old.value].split())


def test_every_state_is_reachable_and_only_ended_ones_are_final() -> None:
    reached = {INITIAL}
    while more := {new for old, new in ARROWS if old in reached} - reached:
        reached |= more
    assert reached == set(State)
    assert {state for state in State if not any(old is state for old, _ in ARROWS)} == FINAL
    assert FINAL < ENDED


def test_groups_do_not_overlap() -> None:
    assert not set(RUNNING) & ENDED
    assert set(STARTUP) < set(RUNNING)
    assert {INITIAL, *RUNNING, *WAITING, *ENDED} == set(State)


def test_every_state_is_documented() -> None:
    source = inspect.getsource(State)
    for state in State:
        line = next(line for line in source.splitlines() if f'"{state.value}"' in line)
        assert "#" in line
        assert state.value in (states.__doc__ or "")


LIMITS = Limits(max_restarts=1, max_steps=1)


def situations(state: State) -> list[Situation]:
    """A server in `state`, before and after its engine ended, with its budget whole and used up."""
    stop_at = 0.0 if state is State.DRAINING else None
    resume_at = 1.0 if state in WAITING else None
    taken_since = -1e6 if state in WAITING else None
    began = Situation(state, stop_at=stop_at, resume_at=resume_at, taken_since=taken_since)
    ended = replace(began, exit=None if state in (INITIAL, *WAITING, *ENDED) else ExitStatus(1))
    return [began, ended, replace(ended, served=True), replace(ended, served=True, restarts=(0.0,), steps=1)]


@pytest.mark.parametrize("state", State, ids=lambda s: s.value)
@pytest.mark.parametrize("happening", HAPPENINGS, ids=repr)
@pytest.mark.parametrize("clock", [0.0, 1e6])
def test_the_policy_takes_only_allowed_arrows(state: State, happening: Happening, clock: float) -> None:
    if isinstance(happening, Launched) and state not in (INITIAL, *WAITING):
        return
    for situation in situations(state):
        now = situation
        for action in decide(situation, happening, clock, LIMITS):
            if isinstance(action, Enter):
                assert allowed(now.state, action.state)
            now = now.after(happening, [action], clock)
        assert state not in ENDED or now.state is state


def test_every_arrow_but_those_of_a_launch_that_is_refused_is_taken_by_the_policy() -> None:
    taken: set[tuple[State, State]] = set()
    for state, happening, clock in itertools.product(State, HAPPENINGS, (0.0, 1.0)):
        for situation in situations(state):
            now = situation.state
            for action in decide(situation, happening, clock, LIMITS):
                if isinstance(action, Enter):
                    taken.add((now, action.state))
                    now = action.state
    refused = {(state, State.FAILED_TO_START) for state in (INITIAL, *WAITING)}
    assert taken >= ARROWS - refused


def test_a_second_request_kills() -> None:
    draining = Situation(State.DRAINING, stop_at=0.0)
    assert any(isinstance(action, Kill) for action in decide(draining, StopAsked(2), 1.0, Limits()))
