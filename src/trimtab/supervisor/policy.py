"""What to do when something happens to a server: a pure function of situation, event and monotonic time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trimtab.engine.logs import Phase
from trimtab.messages import Message, msg
from trimtab.supervisor.states import ENDED, STARTUP, State, allowed


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds."""

    start_s: float = 1800.0  # from process start to the first token
    stop_s: float = 30.0  # from the request to end until the group is killed


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the engine's main process ended: an exit code, or, when negative, the signal that killed it."""

    returncode: int

    @property
    def signal(self) -> int | None:
        return -self.returncode if self.returncode < 0 else None


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
class Exited:
    """The engine's main process has ended and nothing of its group is left."""

    status: ExitStatus


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Someone wants the server to end; `times` counts the requests."""

    times: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went by."""


Happening = Launched | PhaseSeen | Answered | Exited | StopAsked | Tick


@dataclass(frozen=True, slots=True)
class Enter:
    """Change the state."""

    state: State
    reason: Message


@dataclass(frozen=True, slots=True)
class AskToEnd:
    """Ask the engine's main process to end by itself."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End every process of the engine now."""

    reason: Message


Action = Enter | AskToEnd | Kill


@dataclass(frozen=True, slots=True)
class Situation:
    """What the policy knows: the state, when things began (monotonic seconds) and what was done so far."""

    state: State
    launched_at: float = 0.0
    stop_at: float | None = None  # when the first request to end came
    killed_for: Message | None = None  # why the group was killed

    def after(self, happening: Happening, actions: list[Action], now: float) -> Situation:
        """The situation once `actions` are carried out."""
        new = self
        if isinstance(happening, Launched):
            new = replace(new, launched_at=now)
        if isinstance(happening, StopAsked) and new.stop_at is None:
            new = replace(new, stop_at=now)
        for action in actions:
            if isinstance(action, Enter):
                new = replace(new, state=action.state)
            elif isinstance(action, Kill):
                new = replace(new, killed_for=action.reason)
        return new


_PHASES = {Phase.LOADING: State.LOADING, Phase.COMPILING: State.COMPILING}


def decide(now: Situation, happening: Happening, clock: float, limits: Limits) -> list[Action]:
    """The actions that `happening` calls for at monotonic second `clock`; in an ended state always none."""
    if now.state in ENDED:
        return []
    match happening:
        case Launched():
            return [Enter(State.STARTING, msg("the engine's process was started"))]
        case PhaseSeen(phase):
            return _advance(now, _PHASES.get(phase))
        case Answered() if now.state in STARTUP:
            return [Enter(State.READY, msg("answered with a token"))]
        case StopAsked(times):
            return _stop(now, times)
        case Exited(status):
            return [_ended(now, status)]
        case Tick():
            return _overdue(now, clock, limits)
    return []


def _advance(now: Situation, state: State | None) -> list[Action]:
    if state is None or now.state not in STARTUP or not allowed(now.state, state):
        return []
    return [Enter(state, msg("the engine's log says so"))]


def _stop(now: Situation, times: int) -> list[Action]:
    if now.state is State.INSTALLING:
        return [Enter(State.STOPPED, msg("asked to stop before the engine was started"))]
    if now.killed_for is not None:
        return []
    if now.state is not State.DRAINING:
        first: list[Action] = [Enter(State.DRAINING, msg("asked to stop")), AskToEnd()]
        return first if times < 2 else [*first, Kill(msg("asked twice to stop"))]
    return [Kill(msg("asked twice to stop"))] if times >= 2 else []


def _ended(now: Situation, status: ExitStatus) -> Enter:
    if now.state is State.DRAINING:
        return Enter(State.STOPPED, now.killed_for or msg("ended as asked"))
    reason = now.killed_for or describe(status)
    return Enter(State.CRASHED if now.state is State.READY else State.FAILED_TO_START, reason)


def _overdue(now: Situation, clock: float, limits: Limits) -> list[Action]:
    if now.killed_for is not None:
        return []
    if now.state is State.DRAINING and now.stop_at is not None and clock - now.stop_at > limits.stop_s:
        return [Kill(msg("did not end within {seconds:.0f} s of being asked", seconds=limits.stop_s))]
    if now.state in STARTUP and clock - now.launched_at > limits.start_s:
        return [Kill(msg("gave no token within {seconds:.0f} s of its start", seconds=limits.start_s))]
    return []


_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}


def describe(status: ExitStatus) -> Message:
    """One sentence on an exit status; SIGKILL from outside is most often the kernel, short of memory."""
    number = status.signal if status.signal is not None else _shell_signal(status.returncode)
    if number == 9:
        return msg("was killed by SIGKILL: by someone, or by the kernel when memory ran out (see dmesg)")
    if number is not None:
        return msg("was killed by signal {number} ({name})", number=number, name=_SIGNALS.get(number, "?"))
    return msg("ended with exit code {code}", code=status.returncode)


def _shell_signal(code: int) -> int | None:
    """A shell or container reports death by signal N as exit code 128 + N."""
    return code - 128 if code - 128 in _SIGNALS else None
