"""The states of one server, the arrows allowed between them, and named groups; imports nothing of ours.

    installing -> starting -> loading -> compiling -> ready <-> degraded
        |            |           |           |          |          |
        |            +-----------+-----------+----------+----------+-> draining -> stopped   (asked to stop)
        |            +-----------+-----------+          +----------+-> crashed               (died in service)
        +-> stopped              +-> failed_to_start                                         (never was ready)

    failed_to_start, crashed -> backing_off   -> starting, stopped, given_up   (the same command again, after a wait)
                             -> stepping_back -> starting, stopped, given_up   (one parameter lower)
                             -> given_up                             (the budget of starts is used up, or none helps)

A state is observed, never inferred from time: `loading` and `compiling` from the engine's log, `ready` from an answer,
`degraded` from one that stays away. An engine whose log level hides these lines goes from `starting` to `ready`.
`failed_to_start` and `crashed` are last words where nothing is tried again, and passed through where it is.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where one server is."""

    INSTALLING = "installing"  # its name, port and cards are taken; engine or model are being made
    STARTING = "starting"  # the engine's process exists
    LOADING = "loading"  # weights are read
    COMPILING = "compiling"  # compile, memory profile, KV cache, warm-up, graph capture
    READY = "ready"  # gave a real token
    DEGRADED = "degraded"  # its process lives, but it does not answer, says that it is broken, or gives no token
    DRAINING = "draining"  # asked to end, not gone yet
    STOPPED = "stopped"  # ended because it was asked to
    FAILED_TO_START = "failed_to_start"  # ended before it was ready
    CRASHED = "crashed"  # ended after it was ready, unasked
    BACKING_OFF = "backing_off"  # waits before the same command is started again
    STEPPING_BACK = "stepping_back"  # is about to start again with one parameter changed
    GIVEN_UP = "given_up"  # ended too often, or for a reason that no start mends


INITIAL = State.INSTALLING
STARTUP = (State.STARTING, State.LOADING, State.COMPILING)
SERVING = (State.READY, State.DEGRADED)
RUNNING = (*STARTUP, *SERVING, State.DRAINING)
WAITING = (State.BACKING_OFF, State.STEPPING_BACK)  # no engine process, but one to come
ENDED = frozenset({State.STOPPED, State.FAILED_TO_START, State.CRASHED, State.GIVEN_UP})
FINAL = frozenset({State.STOPPED, State.GIVEN_UP})  # no arrow leads away

ARROWS: frozenset[tuple[State, State]] = frozenset(
    {
        (State.INSTALLING, State.STARTING),
        (State.INSTALLING, State.STOPPED),
        (State.INSTALLING, State.FAILED_TO_START),
        (State.STARTING, State.LOADING),
        (State.STARTING, State.COMPILING),
        (State.STARTING, State.READY),
        (State.STARTING, State.DRAINING),
        (State.STARTING, State.FAILED_TO_START),
        (State.LOADING, State.COMPILING),
        (State.LOADING, State.READY),
        (State.LOADING, State.DRAINING),
        (State.LOADING, State.FAILED_TO_START),
        (State.COMPILING, State.READY),
        (State.COMPILING, State.DRAINING),
        (State.COMPILING, State.FAILED_TO_START),
        (State.READY, State.DEGRADED),
        (State.READY, State.DRAINING),
        (State.READY, State.CRASHED),
        (State.DEGRADED, State.READY),
        (State.DEGRADED, State.DRAINING),
        (State.DEGRADED, State.CRASHED),
        (State.DRAINING, State.STOPPED),
        (State.FAILED_TO_START, State.BACKING_OFF),
        (State.FAILED_TO_START, State.STEPPING_BACK),
        (State.FAILED_TO_START, State.GIVEN_UP),
        (State.CRASHED, State.BACKING_OFF),
        (State.CRASHED, State.STEPPING_BACK),
        (State.CRASHED, State.GIVEN_UP),
        (State.BACKING_OFF, State.STARTING),
        (State.BACKING_OFF, State.STOPPED),
        (State.BACKING_OFF, State.FAILED_TO_START),
        (State.BACKING_OFF, State.GIVEN_UP),
        (State.STEPPING_BACK, State.STARTING),
        (State.STEPPING_BACK, State.STOPPED),
        (State.STEPPING_BACK, State.FAILED_TO_START),
        (State.STEPPING_BACK, State.GIVEN_UP),
    }
)


def allowed(old: State, new: State) -> bool:
    """Whether a server may go from `old` to `new`; staying is no arrow."""
    return (old, new) in ARROWS
