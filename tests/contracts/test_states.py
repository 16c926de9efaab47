"""The states of a server: every arrow allowed or refused as drawn, every state reachable and documented."""

from __future__ import annotations

import inspect
import itertools

import pytest

from trimtab.engine.logs import Phase
from trimtab.supervisor import states
from trimtab.supervisor.policy import (
    Answered,
    Enter,
    Exited,
    ExitStatus,
    Happening,
    Kill,
    Launched,
    Limits,
    PhaseSeen,
    Situation,
    StopAsked,
    Tick,
    decide,
)
from trimtab.supervisor.states import ARROWS, ENDED, INITIAL, RUNNING, STARTUP, State, allowed

DRAWN = {
    "installing": "starting stopped failed_to_start",
    "starting": "loading compiling ready draining failed_to_start",
    "loading": "compiling ready draining failed_to_start",
    "compiling": "ready draining failed_to_start",
    "ready": "draining crashed",
    "draining": "stopped",
    "stopped": "",
    "failed_to_start": "",
    "crashed": "",
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
    assert {state for state in State if not any(old is state for old, _ in ARROWS)} == ENDED


def test_groups_do_not_overlap() -> None:
    assert not set(RUNNING) & ENDED
    assert set(STARTUP) < set(RUNNING)
    assert {INITIAL, *RUNNING, *ENDED} == set(State)


def test_every_state_is_documented() -> None:
    source = inspect.getsource(State)
    for state in State:
        line = next(line for line in source.splitlines() if f'"{state.value}"' in line)
        assert "#" in line
        assert state.value in (states.__doc__ or "")


@pytest.mark.parametrize("state", State, ids=lambda s: s.value)
@pytest.mark.parametrize("happening", HAPPENINGS, ids=repr)
@pytest.mark.parametrize("clock", [0.0, 1e6])
def test_the_policy_takes_only_allowed_arrows(state: State, happening: Happening, clock: float) -> None:
    if isinstance(happening, Launched) and state is not INITIAL:
        return
    situation = Situation(state, stop_at=0.0 if state is State.DRAINING else None)
    for action in decide(situation, happening, clock, Limits()):
        if isinstance(action, Enter):
            assert allowed(situation.state, action.state)
        situation = situation.after(happening, [action], clock)
    assert state not in ENDED or situation.state is state


def test_every_arrow_but_those_of_a_lost_claim_is_taken_by_the_policy() -> None:
    taken = {
        (state, action.state)
        for state, happening in itertools.product(State, HAPPENINGS)
        for action in decide(Situation(state), happening, 0.0, Limits())
        if isinstance(action, Enter)
    }
    assert taken >= ARROWS - {(State.INSTALLING, State.FAILED_TO_START)}


def test_a_second_request_kills() -> None:
    draining = Situation(State.DRAINING, stop_at=0.0)
    assert any(isinstance(action, Kill) for action in decide(draining, StopAsked(2), 1.0, Limits()))
