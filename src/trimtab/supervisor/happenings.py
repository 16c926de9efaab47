"""What happens to a server, what the policy answers, and the bounds it keeps: values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trimtab.engine.logs import Phase
from trimtab.messages import Message
from trimtab.supervisor.states import State


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server, in seconds where not said otherwise."""

    start_s: float = 1800.0  # from process start to the first token
    drain_s: float = 25.0  # from the request to end until running requests are cut off
    engine_drain_s: float = 0.0  # how long the engine lets requests run by itself after SIGTERM, taking no new ones
    stop_s: float = 30.0  # from SIGTERM to the engine, and the time it lets requests run, until the group is killed
    rest_s: float = 3.0  # what an engine that drained by itself may take to end once its last request is done
    dead_s: float = 15.0  # how long an engine that calls itself broken may take to end by itself
    silent_s: float = 120.0  # how long /health may stay unanswered
    max_restarts: int = 0  # within window_s; 0: none
    window_s: float = 3600.0
    first_wait_s: float = 2.0  # before the first restart in a row; doubles with each
    longest_wait_s: float = 300.0
    stable_s: float = 600.0  # ready for so long: the next failure is a first one again
    taken_s: float = 600.0  # how long others may hold the cards' memory before a restart
    max_steps: int = 0  # parameters changed one after the other; 0: none

    @property
    def end_s(self) -> float:
        """The longest from the request to end until the engine's group is killed."""
        return (self.engine_drain_s or self.drain_s) + self.stop_s


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the engine's main process ended: an exit code, or, when negative, the signal that killed it."""

    returncode: int

    @property
    def signal(self) -> int | None:
        return -self.returncode if self.returncode < 0 else None


class Sign(StrEnum):
    """By what an engine whose process lives shows that it is not well."""

    DEAD = "dead"  # /health answers that the engine is gone
    SILENT = "silent"  # /health does not answer
    STALLED = "stalled"  # nothing moves although requests run; a token is being asked for
    HUNG = "hung"  # that token did not come


@dataclass(frozen=True, slots=True)
class Launched:
    """The engine's process exists."""


@dataclass(frozen=True, slots=True)
class PhaseSeen:
    """The engine's log shows a phase of starting."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Answered:
    """The engine gave a real token."""


@dataclass(frozen=True, slots=True)
class Unwell:
    """The engine's process lives, but `sign`."""

    sign: Sign
    reason: Message


@dataclass(frozen=True, slots=True)
class Well:
    """The engine answers again and gives tokens."""


@dataclass(frozen=True, slots=True)
class Drained:
    """No request runs any more; or nobody can tell, when not `known`."""

    known: bool = True


@dataclass(frozen=True, slots=True)
class Exited:
    """The engine's main process has ended and nothing of its group is left."""

    status: ExitStatus


@dataclass(frozen=True, slots=True)
class Examined:
    """What the log of the ended engine told: whether another start can help, and whether a changed command can."""

    permanent: bool | None = None  # None: nobody knows
    step: Message | None = None  # what the next start would change, and why
    cause: Message | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The cards are free again, or a look at them is over and `note` says what is still taken, and by whom."""

    note: Message | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Someone wants the server to end; `times` counts the requests."""

    times: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went by."""


Happening = (
    Launched | PhaseSeen | Answered | Unwell | Well | Drained | Exited | Examined | Settled | StopAsked | Tick
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Enter:
    """Change the state; where another start comes: its monotonic second, and the failures in a row before it."""

    state: State
    reason: Message
    resume_at: float | None = None
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """Say `Drained` once no request runs."""


@dataclass(frozen=True, slots=True)
class AskToEnd:
    """Ask the engine's main process to end by itself."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End every process of the engine now."""

    reason: Message


@dataclass(frozen=True, slots=True)
class Examine:
    """Find out why it ended: `Examined`."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until the cards are free: `Settled`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Start the engine again."""


Action = Enter | Drain | AskToEnd | Kill | Examine | Settle | Launch
