"""What to do when something happens to a server: a pure function of situation, event and monotonic time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trimtab.engine.logs import Phase
from trimtab.messages import Message, msg
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
from trimtab.supervisor.states import FINAL, SERVING, STARTUP, WAITING, State, allowed


@dataclass(frozen=True, slots=True)
class Situation:
    """What the policy knows: the state, when things began (monotonic seconds) and what was done so far."""

    state: State
    launched_at: float = 0.0
    ready_at: float | None = None  # of this start
    served: bool = False  # some start became ready
    exit: ExitStatus | None = None  # of this start; being examined
    stop_at: float | None = None  # when the first request to end came
    asked_at: float | None = None  # when the engine was asked to end
    drained_at: float | None = None  # when its last request was done, after that
    killed_for: Message | None = None  # why the group was killed
    unwell_since: float | None = None
    sign: Sign | None = None
    resume_at: float | None = None  # when the next start is due
    taken_since: float | None = None  # when the cards for it were first seen not to be free
    restarts: tuple[float, ...] = ()  # when the same command was started again
    failures: int = 0  # in a row, without a stable time between them
    steps: int = 0  # parameters changed so far

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in FINAL or (self.state in _LAST_WORDS and self.resume_at is None)

    def after(self, happening: Happening, actions: list[Action], now: float) -> Situation:
        """The situation once `actions` are carried out."""
        new = _noted(self, happening, now)
        for action in actions:
            match action:
                case Enter():
                    new = _entered(new, action, now)
                case Kill(reason):
                    new = replace(new, killed_for=reason)
                case AskToEnd():
                    new = replace(new, asked_at=now)
                case Settle():
                    new = replace(new, resume_at=None)
        return new


_LAST_WORDS = (State.FAILED_TO_START, State.CRASHED)
_PHASES = {Phase.LOADING: State.LOADING, Phase.COMPILING: State.COMPILING}


def _noted(now: Situation, happening: Happening, clock: float) -> Situation:
    match happening:
        case Launched():
            again = now.state is State.BACKING_OFF
            return replace(
                now, launched_at=clock, ready_at=None, exit=None, killed_for=None, unwell_since=None, sign=None,
                taken_since=None,
                restarts=(*now.restarts, clock) if again else now.restarts,
                steps=now.steps + (now.state is State.STEPPING_BACK),
            )  # fmt: skip
        case Exited(status):
            return replace(now, exit=status)
        case StopAsked() if now.stop_at is None:
            return replace(now, stop_at=clock)
        case Unwell(sign):
            same = now.sign is sign and now.unwell_since is not None
            return now if same else replace(now, sign=sign, unwell_since=clock)
        case Drained(known) if known and now.asked_at is not None and now.drained_at is None:
            return replace(now, drained_at=clock)
        case Settled(note) if note is not None and now.taken_since is None:
            return replace(now, taken_since=clock)
        case Well():
            return replace(now, sign=None, unwell_since=None)
    return now


def _entered(now: Situation, action: Enter, clock: float) -> Situation:
    new = replace(now, state=action.state, resume_at=action.resume_at)
    if action.state is State.READY and now.state in STARTUP:
        return replace(new, ready_at=clock, served=True)
    return replace(new, failures=action.in_a_row) if action.state in WAITING else new


def decide(now: Situation, happening: Happening, clock: float, limits: Limits) -> list[Action]:
    """The actions that `happening` calls for at monotonic second `clock`; when all is over, none."""
    if now.over:
        return []
    match happening:
        case Launched():
            return [Enter(State.STARTING, msg("the engine's process was started"))]
        case PhaseSeen(phase):
            return _advance(now, _PHASES.get(phase))
        case Answered() if now.state in STARTUP:
            return [Enter(State.READY, msg("answered with a token"))]
        case Unwell(sign, reason) if now.state in SERVING:
            return _unwell(now, sign, reason, clock, limits)
        case Well() if now.state is State.DEGRADED and now.killed_for is None:
            return [Enter(State.READY, msg("answers again and gives tokens"))]
        case Drained() if now.state is State.DRAINING and now.asked_at is None and now.exit is None:
            return [AskToEnd()]
        case StopAsked(times):
            return _stop(now, times, limits)
        case Exited():
            return [_stopped(now)] if now.state is State.DRAINING else [Examine()]
        case Examined() if now.exit is not None and now.state in (*STARTUP, *SERVING):
            return _ended(now, now.exit, happening, clock, limits)
        case Settled(note) if now.state in WAITING:
            return [Launch()] if note is None else _still_taken(now, note, clock, limits)
        case Tick():
            return _overdue(now, clock, limits)
    return []


def _advance(now: Situation, state: State | None) -> list[Action]:
    if state is None or now.state not in STARTUP or not allowed(now.state, state):
        return []
    return [Enter(state, msg("the engine's log says so"))]


def _unwell(now: Situation, sign: Sign, reason: Message, clock: float, limits: Limits) -> list[Action]:
    if now.exit is not None or now.killed_for is not None:
        return []
    actions: list[Action] = [Enter(State.DEGRADED, reason)] if now.state is State.READY else []
    if sign is Sign.HUNG:
        return [*actions, Kill(reason)]
    bounds = {Sign.DEAD: limits.dead_s, Sign.SILENT: limits.silent_s}
    since = now.unwell_since if now.sign is sign and now.unwell_since is not None else clock
    if sign in bounds and clock - since >= bounds[sign]:
        return [*actions, Kill(reason)]
    return actions


def _stop(now: Situation, times: int, limits: Limits) -> list[Action]:
    if now.state is State.INSTALLING:
        return [Enter(State.STOPPED, msg("asked to stop before the engine was started"))]
    if now.state in WAITING:
        return [Enter(State.STOPPED, msg("asked to stop before the engine was started again"))]
    if now.killed_for is not None or now.exit is not None:
        return []
    if now.state is not State.DRAINING:
        first: list[Action] = [Enter(State.DRAINING, msg("asked to stop"))]
        if times >= 2:
            return [*first, AskToEnd(), Kill(msg("asked twice to stop"))]
        if now.state is not State.READY:
            return [*first, AskToEnd()]
        return [*first, AskToEnd(), Drain()] if limits.engine_drain_s else [*first, Drain()]
    return [Kill(msg("asked twice to stop"))] if times >= 2 else []


def _stopped(now: Situation) -> Enter:
    return Enter(State.STOPPED, now.killed_for or msg("ended as asked"))


def _ended(now: Situation, status: ExitStatus, found: Examined, clock: float, limits: Limits) -> list[Action]:
    """The end of one start, and what comes after it."""
    reason = now.killed_for or describe(status)
    end = Enter(State.CRASHED if now.state in SERVING else State.FAILED_TO_START, reason)
    if now.stop_at is not None:
        return [end]
    in_a_row = _failures(now, clock, limits) + 1
    if found.step is not None and now.steps < limits.max_steps:
        return [end, Enter(State.STEPPING_BACK, found.step, resume_at=clock, in_a_row=in_a_row)]
    if now.steps and not now.served:
        return [end, Enter(State.GIVEN_UP, _no_more_steps(now.steps, found.cause or reason))]
    if limits.max_restarts == 0 or (not now.served and found.permanent is not False):
        return [end]
    if found.permanent and now.state not in SERVING:  # what once served is tried again, whatever its log says
        return [end, Enter(State.GIVEN_UP, msg("no start mends it: {cause}", cause=found.cause or reason))]
    recent = sum(clock - at < limits.window_s for at in now.restarts)
    if recent >= limits.max_restarts:
        return [end, Enter(State.GIVEN_UP, _used_up(recent, limits, found.cause or reason))]
    wait_s = wait_before(in_a_row, limits)
    why = msg(
        "starts again in {seconds:.0f} s (restart {number} of {most})",
        seconds=wait_s,
        number=recent + 1,
        most=limits.max_restarts,
    )
    return [end, Enter(State.BACKING_OFF, why, resume_at=clock + wait_s, in_a_row=in_a_row)]


def _still_taken(now: Situation, note: Message, clock: float, limits: Limits) -> list[Action]:
    """A start without the memory it needs would fail as the last one did: none is spent on it."""
    waited_s = clock - (now.taken_since if now.taken_since is not None else clock)
    if waited_s < limits.taken_s:
        return [Settle()]
    return [Enter(State.GIVEN_UP, msg("not started again: {why}", why=note))]


def _no_more_steps(steps: int, cause: Message) -> Message:
    return msg("failed again after {count} changed parameters: {cause}", count=steps, cause=cause)


def _used_up(recent: int, limits: Limits, cause: Message) -> Message:
    return msg(
        "ended again after {count} restarts within {minutes:.0f} minutes: {cause}",
        count=recent,
        minutes=limits.window_s / 60,
        cause=cause,
    )


def _failures(now: Situation, clock: float, limits: Limits) -> int:
    """Failures in a row before this one."""
    stable = now.ready_at is not None and clock - now.ready_at >= limits.stable_s
    return 0 if stable else now.failures


def wait_before(in_a_row: int, limits: Limits) -> float:
    """Seconds to wait before a restart after so many failures in a row, the last one included."""
    return float(min(limits.longest_wait_s, limits.first_wait_s * 2 ** min(in_a_row - 1, 30)))


def _overdue(now: Situation, clock: float, limits: Limits) -> list[Action]:
    if now.state in WAITING:
        return [Settle()] if now.resume_at is not None and clock >= now.resume_at else []
    if now.killed_for is not None or now.exit is not None:
        return []
    if now.state is State.DRAINING:
        return _overdue_stop(now, clock, limits)
    if now.state in STARTUP and clock - now.launched_at > limits.start_s:
        return [Kill(msg("gave no token within {seconds:.0f} s of its start", seconds=limits.start_s))]
    return []


def _overdue_stop(now: Situation, clock: float, limits: Limits) -> list[Action]:
    if now.asked_at is None:
        late = now.stop_at is not None and clock - now.stop_at > limits.drain_s
        return [AskToEnd()] if late else []
    if limits.engine_drain_s and now.drained_at is not None and clock - now.drained_at > limits.rest_s:
        return [Kill(msg("its requests were done, and it did not end within {seconds:.0f} s", seconds=limits.rest_s))]
    bound_s = limits.engine_drain_s + limits.stop_s
    if clock - now.asked_at > bound_s:
        return [Kill(msg("did not end within {seconds:.0f} s of being asked", seconds=bound_s))]
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
