"""What a supervision is given, and what it tells: the launch, the failure of a start, its diagnosis, the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trimtab.engine.logs import LogEvent
from trimtab.engine.registry import ServerRecord
from trimtab.errors import EngineError
from trimtab.messages import Message, msg
from trimtab.supervisor.happenings import ExitStatus, Limits, Sign
from trimtab.supervisor.registry import LOG_FILES
from trimtab.supervisor.states import State
from trimtab.supervisor.watch import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """All that is needed to run one engine. `env` is its whole environment, not an addition to ours."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    port: int
    served_model: str  # the id that clients send
    state_dir: Path
    api_key: str = ""
    devices: tuple[str, ...] = ()
    log_file: Path | None = None  # in the server's directory when None
    log_bytes: int = 64 * 2**20  # a log that is larger is set aside
    log_files: int = LOG_FILES
    cwd: Path | None = None  # the server's directory when None or gone
    engine_version: str = ""
    memo: Mapping[str, Any] = field(default_factory=dict)  # for the journal: all that starts it again
    limits: Limits = field(default_factory=Limits)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Step:
    """The next start with one parameter changed; `argv` is the whole new one."""

    argv: tuple[str, ...]
    flag: str
    before: str | None
    after: str | None
    why: Message


@dataclass(frozen=True, slots=True)
class Failure:
    """One start that ended unasked, as a diagnosis needs it. `errors` are the log's most telling lines."""

    name: str
    argv: tuple[str, ...]
    log_file: Path
    status: ExitStatus
    served: bool  # it was ready once
    killed_for: Message | None  # why the supervisor ended it, when it did
    errors: tuple[str, ...]
    steps: tuple[Step, ...] = ()  # those taken so far
    sign: Sign | None = None  # what the watch saw last, where it was not well


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a start ended. `permanent`: whether the same command must fail again, None when nobody knows."""

    errors: tuple[str, ...] = ()
    cause: Message | None = None
    permanent: bool | None = None
    step: Step | None = None
    suggestion: Message | None = None  # what would be changed, or why nothing is
    data: Mapping[str, Any] = field(default_factory=dict)  # for the journal: codes, evidence, fix

    @property
    def told(self) -> Message | None:
        """The cause in one sentence; the log's most telling line where no cause is known."""
        return self.cause or (msg("{line}", line=self.errors[0]) if self.errors else None)


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A new state, `at_s` seconds after the launch; after a failure with what is known of its cause."""

    state: State
    previous: State
    reason: Message
    at_s: float
    diagnosis: Diagnosis | None = None


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A line of the engine's log that tells something: a phase, a number, progress or an error."""

    event: LogEvent
    at_s: float


@dataclass(frozen=True, slots=True)
class StillTaken:
    """The next start waits for cards; `note` says who holds them. Told again when that changes."""

    note: Message


@dataclass(frozen=True, slots=True)
class Unwritten:
    """The disk takes something no more, full or read-only; the server goes on."""

    reason: Message


Event = StateChanged | LogSeen | StillTaken | Unwritten


@dataclass(frozen=True, slots=True)
class Start:
    """Which start became ready: 0 is the first; `step` when it runs with a parameter changed just now."""

    number: int
    step: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What the verbs know and a supervision asks.

    `observer` is called in the supervising thread, `when_ready` after each start in a thread of its own; what it
    returns is journalled. What these raise ends the engine and is raised by `supervise` (`when_ready`: at the first
    start only). `diagnose` and `settle` run in threads of their own; `settle`
    is given the next start's argv and returns once the cards are free for it, or after a while, and then says what is
    taken: it is asked again.
    """

    observer: Callable[[Event], None] = lambda event: None
    when_ready: Callable[[ServerRecord, Start], Mapping[str, Any] | None] | None = None
    diagnose: Callable[[Failure], Diagnosis] = lambda failure: Diagnosis(errors=failure.errors)
    settle: Callable[[tuple[str, ...]], Message | None] = lambda argv: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended. `errors` are the log's most telling lines, likeliest cause first."""

    name: str
    state: State
    reason: Message
    status: ExitStatus | None
    diagnosis: Diagnosis
    ready_after_s: float | None
    log_file: Path
    restarts: int = 0

    @property
    def errors(self) -> tuple[str, ...]:
        return self.diagnosis.errors

    @property
    def failed(self) -> bool:
        return self.state is not State.STOPPED


def failure(outcome: Outcome) -> EngineError:
    """The error to show for an outcome that failed: what ended, how, and the likeliest cause from the log."""
    began = {State.FAILED_TO_START: msg("failed to start"), State.GIVEN_UP: msg("was given up")}
    what = began.get(outcome.state, msg("crashed"))
    cause = outcome.diagnosis.told
    if outcome.state is State.GIVEN_UP:
        said = msg("{name} {began}: {reason}", name=outcome.name, began=what, reason=outcome.reason)
    elif cause is not None and str(cause) != str(outcome.reason):
        said = msg(
            "{name} {began}: the engine {reason}: {cause}",
            name=outcome.name,
            began=what,
            reason=outcome.reason,
            cause=cause,
        )
    else:
        said = msg("{name} {began}: the engine {reason}", name=outcome.name, began=what, reason=outcome.reason)
    return EngineError(
        said, hint=msg("Its whole log: trimtab logs {name} ({file})", name=outcome.name, file=outcome.log_file)
    )
