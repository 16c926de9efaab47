"""One server from its first start to its end: the one loop, which asks the policy what to do and does it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from trimtab.engine.logs import Kind, LogEvent, failure_summary, parse_line
from trimtab.errors import HostError, TrimtabError
from trimtab.messages import Message, msg
from trimtab.supervisor import registry
from trimtab.supervisor.book import Book
from trimtab.supervisor.happenings import (
    Action,
    AskToEnd,
    Drain,
    Enter,
    Examine,
    Examined,
    Exited,
    ExitStatus,
    Happening,
    Kill,
    Launch,
    Launched,
    PhaseSeen,
    Settle,
    Settled,
    StopAsked,
    Tick,
)
from trimtab.supervisor.journal import LAUNCH, SERVING, STEP
from trimtab.supervisor.launching import (
    Callbacks,
    Diagnosis,
    Failure,
    LaunchSpec,
    LogSeen,
    Outcome,
    Start,
    StateChanged,
    Step,
    StillTaken,
    Unwritten,
)
from trimtab.supervisor.notify import Notifier
from trimtab.supervisor.policy import Situation, decide
from trimtab.supervisor.process import Engine
from trimtab.supervisor.readiness import Probe
from trimtab.supervisor.rotation import RotatingLog
from trimtab.supervisor.states import INITIAL, STARTUP, State
from trimtab.supervisor.stopping import Stop
from trimtab.supervisor.watch import Watch

TICK_S, IDLE_TICK_S = 0.5, 60.0
JOIN_S = 5.0
NOT_STARTED = 127  # as a shell says of a program that it cannot run
WAIT_TOLD_S = 1.0  # a shorter wait for the cards is none
KEPT_LINES = 4000  # of errors and tracebacks, for the failure summary
_FAILURE_KINDS = frozenset({Kind.ERROR, Kind.EXCEPTION, Kind.TRACEBACK, Kind.PLAIN})
_QUIET_KINDS = frozenset({Kind.OTHER, Kind.PLAIN, Kind.TRACEBACK})
_JOURNALLED = frozenset(
    {Kind.LOADED, Kind.COMPILED, Kind.KV_MEMORY, Kind.KV_TOKENS, Kind.KV_BLOCKS, Kind.CONCURRENCY, Kind.CAPTURED,
     Kind.ENGINE_READY}
)  # fmt: skip


def supervise(spec: LaunchSpec, stop: Stop, callbacks: Callbacks | None = None) -> Outcome:
    """Run the server until it ends for good or `stop` is requested; on return no process of it is left.

    HostError when the program cannot be executed. The name should be claimed (`registry.claimed`).
    """
    return _Supervision(spec, callbacks or Callbacks()).run(stop)


@dataclass(frozen=True, slots=True)
class _Failed:
    """What `when_ready` raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class _Serving:
    """`when_ready` is through; `trouble` is what it raised at a start after the first, which goes on all the same."""

    found: Mapping[str, Any]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class _Diagnosed:
    diagnosis: Diagnosis


@dataclass(slots=True)
class _Memory:
    """What the loop learns on the way to the outcome."""

    ready_after_s: float | None = None
    status: ExitStatus | None = None
    reason: Message = field(default_factory=lambda: msg("not started"))
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    error: BaseException | None = None
    starts: int = 0
    steps: tuple[Step, ...] = ()
    settling_at: float | None = None  # when the wait for the cards of the next start began
    not_started: Message | None = None  # why the last restart came to no process
    behind: bool = False  # whether the disk was seen to take nothing
    taken: str = ""  # who was last seen to hold them


class _Supervision:
    def __init__(self, spec: LaunchSpec, callbacks: Callbacks) -> None:
        self._spec, self._call = spec, callbacks
        self._home = registry.directory(spec.state_dir, spec.name)
        self._log_file = spec.log_file or self._home / registry.LOG
        self._book = Book(spec, self._log_file)
        self._notifier = Notifier(os.environ)
        self._inbox: SimpleQueue[Happening | LogEvent | _Failed | _Serving | _Diagnosed] = SimpleQueue()
        self._failure_lines: deque[LogEvent] = deque(maxlen=KEPT_LINES)
        self._situation = Situation(INITIAL)
        self._memory = _Memory()
        self._argv = spec.argv
        self._log = RotatingLog(self._log_file, spec.log_bytes, spec.log_files)
        self._engine: Engine | None = None
        self._watch: Watch | None = None
        self._threads: list[threading.Thread] = []
        self._over = False

    def run(self, stop: Stop) -> Outcome:
        self._book.append(LAUNCH, data=dict(self._spec.memo) or {"argv": self._argv})
        try:
            if stop.times == 0:
                self._launch()
            stop.listen(lambda times: self._inbox.put(StopAsked(times)))
            while not self._situation.over:
                self._turn()
        finally:
            self._over = True
            if self._engine is not None:
                self._abandon(self._engine)
            for thread in self._threads:
                thread.join(JOIN_S)
            self._book.close()
        if self._memory.error is not None:
            raise self._memory.error
        memory, state = self._memory, self._situation.state
        diagnosis = Diagnosis() if state is State.STOPPED else memory.diagnosis
        return Outcome(
            self._spec.name, state, memory.reason, memory.status, diagnosis, memory.ready_after_s, self._log_file,
            restarts=max(0, memory.starts - 1),
        )  # fmt: skip

    def _launch(self) -> None:
        spec = self._spec
        self._failure_lines.clear()
        self._memory.not_started = None
        cwd = spec.cwd if spec.cwd is not None and spec.cwd.is_dir() else self._home
        try:
            self._begin_log()
            engine = Engine(
                self._argv, env=spec.env, cwd=cwd, log=self._log,
                on_line=self._hear, on_exit=lambda status: self._inbox.put(Exited(status)),
            )  # fmt: skip
        except TrimtabError as error:
            if self._memory.starts:
                self._not_started(error.message)
                return
            self._enter(Enter(State.FAILED_TO_START, error.message), passing=False)
            raise
        self._engine = engine
        self._book.note(
            engine_pid=engine.pid, group=engine.group, mark=engine.mark, argv=self._argv, restarts=self._memory.starts
        )
        self._memory.starts += 1
        self._handle(Launched())
        url = self._book.record.base_url.removesuffix("/v1")
        probe = Probe(url, api_key=spec.api_key, model=spec.served_model, health_s=spec.pace.health_s)
        self._watch = Watch(probe, spec.pace, lambda: engine.listens_on(spec.port), self._inbox.put)
        self._watch.start()

    def _not_started(self, why: Message) -> None:
        """A restart that comes to no process counts as one that ended at once: the reason may pass."""
        self._memory.starts += 1
        self._memory.not_started = why
        self._handle(Launched())
        self._inbox.put(Exited(ExitStatus(NOT_STARTED)))

    def _begin_log(self) -> None:
        """A restart goes on without a log where the disk takes none; the first start says so and ends."""
        self._log = RotatingLog(self._log_file, self._spec.log_bytes, self._spec.log_files)
        try:
            self._log.begin()
        except HostError as error:
            if self._memory.starts == 0:
                raise
            self._book.append("unwritten", reason=error.message)
            self._call.observer(Unwritten(error.message))

    def _catch_up(self) -> None:
        """Write what waits for the disk; say once that it takes nothing."""
        self._book.catch_up()
        behind = self._book.is_behind
        if behind and not self._memory.behind:
            self._call.observer(Unwritten(
                msg("{home} cannot be written: {reason}; journal and record wait in memory",
                    home=self._home, reason=self._book.refusal)
            ))  # fmt: skip
        self._memory.behind = behind

    def _turn(self) -> None:
        try:
            item = self._inbox.get(timeout=self._patience())
        except Empty:
            item = Tick()
        self._notifier.alive()
        if self._book.is_behind or self._memory.behind:
            self._catch_up()
        if isinstance(item, LogEvent):
            self._log_seen(item)
        elif isinstance(item, _Failed):
            self._memory.error = item.error
            self._handle(StopAsked(1))
        elif isinstance(item, _Serving):
            self._book.append(SERVING, reason=item.trouble, data={**item.found, "start": self._memory.starts})
        elif isinstance(item, _Diagnosed):
            self._diagnosed(item.diagnosis)
        else:
            self._handle(item)

    def _patience(self) -> float:
        """How long to wait for something to happen before looking at the clock."""
        if self._situation.resume_at is not None:
            return min(TICK_S, max(0.01, self._situation.resume_at - time.monotonic()))
        rest = TICK_S if self._situation.state is not State.READY or self._book.is_behind else IDLE_TICK_S
        watchdog_s = self._notifier.watchdog_s
        return min(rest, watchdog_s / 3) if watchdog_s is not None else rest

    def _handle(self, happening: Happening) -> None:
        now = time.monotonic()
        if isinstance(happening, Exited):
            self._gone(happening.status)
        elif isinstance(happening, Settled):
            self._settled(happening.note, now)
        actions = decide(self._situation, happening, now, self._spec.limits)
        self._situation = self._situation.after(happening, actions, now)
        entered = [action for action in actions if isinstance(action, Enter)]
        for action in actions:
            if isinstance(action, Enter):
                self._enter(action, passing=action is not entered[-1])
            else:
                self._act(action)

    def _act(self, action: Action) -> None:
        engine = self._engine
        match action:
            case Drain() if self._watch is not None:
                self._watch.drain()
            case AskToEnd() if engine is not None:
                engine.ask_to_end()
            case Kill(reason) if engine is not None:
                self._book.append("signal", reason=reason, data={"signal": "SIGKILL"})
                engine.kill()
            case Examine():
                self._in_thread("examine", self._examine)
            case Settle():
                self._memory.settling_at = self._memory.settling_at or time.monotonic()
                self._in_thread("settle", self._settle)
            case Launch():
                self._launch()

    def _enter(self, action: Enter, *, passing: bool) -> None:
        """The only place where the state changes: journal and record, then who listens."""
        previous, at_s = self._book.state, time.monotonic() - self._situation.launched_at
        first = action.state is State.READY and previous in STARTUP
        if first:
            self._memory.ready_after_s = at_s
            self._book.note(ready_after_s=at_s)
        self._memory.reason = action.reason
        self._book.enter(action.state, action.reason, passing=passing, start=self._memory.starts)
        self._notifier.state(action.state, str(action.reason))
        known = self._memory.diagnosis if action.state not in (*STARTUP, State.READY) else None
        self._call.observer(StateChanged(action.state, previous, action.reason, at_s, known))
        if action.state is State.STEPPING_BACK and self._memory.diagnosis.step is not None:
            self._step_back(self._memory.diagnosis.step)
        if first:
            self._in_thread("ready", self._be_ready)

    def _step_back(self, step: Step) -> None:
        self._argv = step.argv
        self._memory.steps += (step,)
        data = {"flag": step.flag, "before": step.before, "after": step.after, "argv": step.argv}
        self._book.append(STEP, reason=step.why, data=data)

    def _hear(self, line: str) -> None:
        """In the output thread: keep what may explain a failure, pass on what tells something."""
        event = parse_line(line)
        if event.kind in _FAILURE_KINDS:
            self._failure_lines.append(event)
        if event.kind not in _QUIET_KINDS:
            self._inbox.put(event)

    def _log_seen(self, event: LogEvent) -> None:
        if event.kind in _JOURNALLED:
            self._book.append("log", data={"kind": event.kind, "process": event.process, **event.numbers})
        if event.phase is not None:
            self._handle(PhaseSeen(event.phase))
        self._call.observer(LogSeen(event, time.monotonic() - self._situation.launched_at))

    def _gone(self, status: ExitStatus) -> None:
        self._memory.status, self._engine = status, None
        if self._watch is not None:
            self._watch.end()
        self._book.append("exited", data={"returncode": status.returncode, "start": self._memory.starts})

    def _examine(self) -> None:
        situation, status = self._situation, self._memory.status
        assert status is not None
        failed = Failure(
            self._spec.name, self._argv, self._log_file, status, situation.served, situation.killed_for,
            failure_summary(self._failure_lines), self._memory.steps, situation.sign,
        )  # fmt: skip
        try:
            if self._memory.not_started is not None or not self._log.begun:  # the log on the disk is a former start's
                found = Diagnosis(errors=failed.errors, cause=self._memory.not_started)
            else:
                found = self._call.diagnose(failed)
        except Exception as error:  # noqa: BLE001 - whatever a diagnosis stumbles over, the server goes on
            found = Diagnosis(errors=failed.errors, data={"diagnosis_failed": repr(error)})
        self._inbox.put(_Diagnosed(found))

    def _diagnosed(self, found: Diagnosis) -> None:
        self._memory.diagnosis = found
        cause = found.told
        data = {"errors": found.errors, "permanent": found.permanent, **found.data}
        if found.suggestion is not None:
            data["suggestion"] = str(found.suggestion)
        self._book.append("diagnosis", reason=cause or "", data=data)
        self._handle(Examined(found.permanent, found.step.why if found.step is not None else None, cause))

    def _settled(self, note: Message | None, now: float) -> None:
        """Write down who holds the cards, once as long as it stays the same, and how long they were waited for."""
        memory, said = self._memory, note
        if note is None and memory.settling_at is not None:
            waited_s, memory.settling_at = now - memory.settling_at, None
            said = msg("free again after {s:.0f} s", s=waited_s) if waited_s >= WAIT_TOLD_S else None
        if note is not None and str(note) != memory.taken:
            self._call.observer(StillTaken(note))
        if said is not None and str(said) != memory.taken:
            self._book.append("cards", reason=said)
        memory.taken = str(note) if note is not None else ""

    def _settle(self) -> None:
        try:
            note = self._call.settle(self._argv)
        except TrimtabError as error:
            note = error.message
        except Exception as error:  # noqa: BLE001 - nobody may wait for ever: the start itself shows what is wrong
            self._book.append("cards", reason=repr(error))
            note = None
        self._inbox.put(Settled(note))

    def _be_ready(self) -> None:
        start = self._memory.starts
        stepped = self._memory.steps[-1] if self._memory.steps and self._memory.diagnosis.step else None
        try:
            found = (
                self._call.when_ready(self._book.record, Start(start - 1, stepped)) if self._call.when_ready else None
            )
            self._inbox.put(_Serving(found or {}))
        except BaseException as error:  # noqa: BLE001 - carried to the loop's thread and raised there
            if start > 1:
                self._inbox.put(_Serving({}, trouble=str(error)))
            elif not self._over and self._memory.starts == start and self._situation.state is State.READY:
                self._inbox.put(_Failed(error))

    def _in_thread(self, name: str, work: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _abandon(self, engine: Engine) -> None:
        """Something of ours broke: the engine must not outlive it."""
        engine.kill()
        while not isinstance(self._inbox.get(), Exited):
            continue
        if self._watch is not None:
            self._watch.end()
