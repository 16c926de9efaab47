"""One server from its start to its end: the one loop, which asks the policy what to do and does it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from trimtab.engine.logs import Kind, LogEvent, failure_summary, parse_line
from trimtab.engine.registry import ServerRecord
from trimtab.errors import EngineError, InternalError, TrimtabError
from trimtab.messages import Message, msg
from trimtab.supervisor import registry
from trimtab.supervisor.journal import SERVING, Journal
from trimtab.supervisor.policy import (
    Answered,
    AskToEnd,
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
from trimtab.supervisor.ports import holder
from trimtab.supervisor.process import Engine, members, started_at
from trimtab.supervisor.readiness import Probe
from trimtab.supervisor.states import ENDED, INITIAL, State, allowed
from trimtab.supervisor.stopping import Stop

ASK_EVERY_S = 0.25  # readiness
TICK_S, IDLE_TICK_S = 0.5, 60.0
READY_JOIN_S = 5.0
KEPT_LINES = 4000  # of errors and tracebacks, for the failure summary
_FAILURE_KINDS = frozenset({Kind.ERROR, Kind.EXCEPTION, Kind.TRACEBACK, Kind.PLAIN})
_QUIET_KINDS = frozenset({Kind.OTHER, Kind.PLAIN, Kind.TRACEBACK})
_JOURNALLED = frozenset(
    {Kind.LOADED, Kind.COMPILED, Kind.KV_MEMORY, Kind.KV_TOKENS, Kind.KV_BLOCKS, Kind.CONCURRENCY, Kind.CAPTURED,
     Kind.ENGINE_READY}
)  # fmt: skip


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
    cwd: Path | None = None  # the server's directory when None
    engine_version: str = ""
    start_timeout_s: float = 1800.0
    stop_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A new state, `at_s` seconds after the launch."""

    state: State
    previous: State
    reason: Message
    at_s: float


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A line of the engine's log that tells something: a phase, a number, progress or an error."""

    event: LogEvent
    at_s: float


Event = StateChanged | LogSeen


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended. `errors` are the log's most telling lines, likeliest cause first."""

    name: str
    state: State
    reason: Message
    status: ExitStatus | None
    errors: tuple[str, ...]
    ready_after_s: float | None
    log_file: Path

    @property
    def failed(self) -> bool:
        return self.state is not State.STOPPED


def supervise(
    spec: LaunchSpec,
    observer: Callable[[Event], None],
    stop: Stop,
    *,
    when_ready: Callable[[ServerRecord], None] | None = None,
) -> Outcome:
    """Run the engine until it ends or `stop` is requested; on return no process of it is left.

    `observer` is called in this thread, `when_ready` once in a thread of its own; what that raises ends the engine and
    is raised here. HostError when the program cannot be executed. The name should be claimed (`registry.claimed`).
    """
    return _Supervision(spec, observer, when_ready).run(stop)


def failure(outcome: Outcome) -> EngineError:
    """The error to show for an outcome that failed: what ended, how, and the likeliest cause from the log."""
    began = msg("failed to start") if outcome.state is State.FAILED_TO_START else msg("crashed")
    cause = outcome.errors[0] if outcome.errors else None
    return EngineError(
        msg(
            "{name} {began}: the engine {reason}: {cause}",
            name=outcome.name,
            began=began,
            reason=outcome.reason,
            cause=cause,
        )
        if cause
        else msg("{name} {began}: the engine {reason}", name=outcome.name, began=began, reason=outcome.reason),
        hint=msg("Its whole log: trimtab logs {name} ({file})", name=outcome.name, file=outcome.log_file),
    )


@dataclass(frozen=True, slots=True)
class _Failed:
    """What `when_ready` raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class _Serving:
    """`when_ready` is through."""


@dataclass(slots=True)
class _Memory:
    """What the loop learns on the way to the outcome."""

    ready_after_s: float | None = None
    status: ExitStatus | None = None
    reason: Message = field(default_factory=lambda: msg("not started"))
    error: BaseException | None = None


class _Supervision:
    def __init__(
        self, spec: LaunchSpec, observer: Callable[[Event], None], when_ready: Callable[[ServerRecord], None] | None
    ) -> None:
        self._spec, self._observer, self._when_ready = spec, observer, when_ready
        self._home = registry.directory(spec.state_dir, spec.name)
        self._journal = Journal(self._home)
        self._inbox: SimpleQueue[Happening | LogEvent | _Failed | _Serving] = SimpleQueue()
        self._failure_lines: deque[LogEvent] = deque(maxlen=KEPT_LINES)
        self._situation = Situation(INITIAL)
        self._limits = Limits(start_s=spec.start_timeout_s, stop_s=spec.stop_timeout_s)
        self._record = _record_of(spec, self._log_file)
        self._over = threading.Event()
        self._memory = _Memory()
        self._engine: Engine | None = None
        self._asker = threading.Thread(target=self._ask, name="readiness", daemon=True)
        self._ready = threading.Thread(target=self._be_ready, name="ready", daemon=True)

    @property
    def _log_file(self) -> Path:
        return self._spec.log_file or self._home / registry.LOG

    def run(self, stop: Stop) -> Outcome:
        try:
            if stop.times == 0:
                self._launch()
            stop.listen(lambda times: self._inbox.put(StopAsked(times)))
            while self._situation.state not in ENDED:
                self._turn()
        finally:
            self._over.set()
            if self._situation.state not in ENDED:
                self._abandon()
            for thread in (self._asker, self._ready):
                if thread.ident is not None:  # started; its server is gone, so whatever it asks fails soon, and a
                    thread.join(READY_JOIN_S)  # thread inside OpenSSL must not see the interpreter end
            self._journal.close()
        if self._memory.error is not None:
            raise self._memory.error
        return self._outcome()

    def _launch(self) -> None:
        try:
            self._engine = Engine(
                self._spec.argv, env=self._spec.env, cwd=self._spec.cwd or self._home, log_file=self._log_file,
                on_line=self._hear, on_exit=lambda status: self._inbox.put(Exited(status)),
            )  # fmt: skip
        except TrimtabError as error:
            self._enter(Enter(State.FAILED_TO_START, error.message))
            raise
        self._record = msgspec.structs.replace(
            self._record, engine_pid=self._engine.pid, group=self._engine.group, mark=self._engine.mark
        )
        self._handle(Launched())
        self._asker.start()

    def _turn(self) -> None:
        state = self._situation.state
        try:
            item = self._inbox.get(timeout=IDLE_TICK_S if state is State.READY else TICK_S)
        except Empty:
            item = Tick()
        if isinstance(item, LogEvent):
            self._log_seen(item)
        elif isinstance(item, _Failed):
            self._memory.error = item.error
            self._handle(StopAsked(1))
        elif isinstance(item, _Serving):
            self._journal.append(SERVING)
        else:
            self._handle(item)

    def _handle(self, happening: Happening) -> None:
        now = time.monotonic()
        if isinstance(happening, Exited):
            self._memory.status = happening.status
        actions = decide(self._situation, happening, now, self._limits)
        self._situation = self._situation.after(happening, actions, now)
        for action in actions:
            match action:
                case Enter():
                    self._enter(action)
                case AskToEnd() if self._engine is not None:
                    self._engine.ask_to_end()
                case Kill(reason) if self._engine is not None:
                    self._journal.append("signal", reason=str(reason), data={"signal": "SIGKILL"})
                    self._engine.kill()

    def _enter(self, action: Enter) -> None:
        """The only place where the state changes: record, journal, observer, in this order."""
        previous = State(self._record.state)
        if not allowed(previous, action.state):
            raise InternalError(msg("a server cannot go from {old} to {new}", old=previous, new=action.state))
        at_s = time.monotonic() - self._situation.launched_at
        if action.state is State.READY:
            self._memory.ready_after_s = at_s
        self._memory.reason = action.reason
        self._record = msgspec.structs.replace(
            self._record, state=action.state, reason=str(action.reason), ready_after_s=self._memory.ready_after_s
        )
        registry.write(self._spec.state_dir, self._record)
        self._journal.append("state", state=action.state, previous=previous, reason=str(action.reason))
        self._observer(StateChanged(action.state, previous, action.reason, at_s))
        if action.state is State.READY:
            self._ready.start()

    def _hear(self, line: str) -> None:
        """In the output thread: keep what may explain a failure, pass on what tells something."""
        event = parse_line(line)
        if event.kind in _FAILURE_KINDS:
            self._failure_lines.append(event)
        if event.kind not in _QUIET_KINDS:
            self._inbox.put(event)

    def _log_seen(self, event: LogEvent) -> None:
        if event.kind in _JOURNALLED:
            self._journal.append("log", data={"kind": event.kind, "process": event.process, **event.numbers})
        if event.phase is not None:
            self._handle(PhaseSeen(event.phase))
        self._observer(LogSeen(event, time.monotonic() - self._situation.launched_at))

    def _ask(self) -> None:
        """In the readiness thread: until a token came, or all is over. A stranger on our port is not the engine."""
        spec = self._spec
        url = f"http://{registry.reachable(spec.host)}:{spec.port}"
        probe = Probe(url, api_key=spec.api_key, model=spec.served_model)
        while not self._over.wait(ASK_EVERY_S):
            if probe.healthy() and _listens(self._engine, spec.port) and probe.answers():
                self._inbox.put(Answered())
                break
        probe.close()

    def _be_ready(self) -> None:
        try:
            if self._when_ready is not None:
                self._when_ready(self._record)
            self._inbox.put(_Serving())
        except BaseException as error:  # noqa: BLE001 - carried to the loop's thread and raised there
            if not self._over.is_set() and self._situation.state is State.READY:
                self._inbox.put(_Failed(error))

    def _abandon(self) -> None:
        """Something of ours broke: the engine must not outlive it."""
        if self._engine is None:
            return
        self._engine.kill()
        while not isinstance(self._inbox.get(), Exited):
            continue

    def _outcome(self) -> Outcome:
        memory, state = self._memory, self._situation.state
        errors = () if state is State.STOPPED else failure_summary(self._failure_lines)
        return Outcome(
            self._spec.name, state, memory.reason, memory.status, errors, memory.ready_after_s, self._log_file
        )


def _listens(engine: Engine | None, port: int) -> bool:
    """Whether the process on `port` is the engine's, as far as this user may see."""
    found = holder(port)
    return engine is None or found is None or found.pid == 0 or found.pid in members(engine.group, engine.mark)


def _record_of(spec: LaunchSpec, log_file: Path) -> ServerRecord:
    claimed = registry.read(spec.state_dir, spec.name)
    ours = claimed is not None and claimed.pid == os.getpid() and claimed.state == INITIAL
    return ServerRecord(
        name=spec.name, state=INITIAL, pid=os.getpid(), pid_started=started_at(os.getpid()) or 0.0, host=spec.host,
        port=spec.port, base_url=f"http://{registry.reachable(spec.host)}:{spec.port}/v1", models=(spec.served_model,),
        api_key=spec.api_key, devices=spec.devices, argv=spec.argv, engine_version=spec.engine_version,
        log=str(log_file), created=claimed.created if claimed is not None and ours else time.time(),
    )  # fmt: skip
