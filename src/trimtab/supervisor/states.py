"""The states of one server, the arrows allowed between them, and named groups; imports nothing of ours.

    installing -> starting -> loading -> compiling -> ready -> draining -> stopped
        |            |           |           |          |         ^
        |            +-----------+-----------+----------+---------+   (asked to stop)
        +-> stopped, failed_to_start         |          +-> crashed   (died in service)
                     +-----------+-----------+-> failed_to_start      (never was ready)

A state is observed, never inferred from time: `loading` and `compiling` from the engine's log, `ready` from an answer.
An engine whose log level hides these lines goes from `starting` to `ready`.
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
    DRAINING = "draining"  # asked to end, not gone yet
    STOPPED = "stopped"  # ended because it was asked to
    FAILED_TO_START = "failed_to_start"  # ended before it was ready
    CRASHED = "crashed"  # ended after it was ready, unasked


INITIAL = State.INSTALLING
STARTUP = (State.STARTING, State.LOADING, State.COMPILING)
RUNNING = (*STARTUP, State.READY, State.DRAINING)
ENDED = frozenset({State.STOPPED, State.FAILED_TO_START, State.CRASHED})

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
        (State.READY, State.DRAINING),
        (State.READY, State.CRASHED),
        (State.DRAINING, State.STOPPED),
    }
)


def allowed(old: State, new: State) -> bool:
    """Whether a server may go from `old` to `new`; staying is no arrow."""
    return (old, new) in ARROWS
