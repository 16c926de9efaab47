"""What the terminal shows while an engine starts, and what happens once it gave its first token: verify, then tell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trimtab.cli.format import serving
from trimtab.cli.progress import drawn
from trimtab.engine.registry import ServerRecord
from trimtab.messages import Message, msg
from trimtab.supervisor.apart import call_apart
from trimtab.supervisor.launching import Event, LogSeen, Start, StateChanged, StillTaken, Unwritten
from trimtab.supervisor.progress import Observer, Progress
from trimtab.supervisor.states import STARTUP, WAITING, State

if TYPE_CHECKING:
    from trimtab.cli.up_gateway import Gateway

_PHASES: dict[State, Message] = {
    State.STARTING: msg("starting vLLM"),
    State.LOADING: msg("loading the weights"),
    State.COMPILING: msg("compiling, sizing the KV cache, warming up"),
    State.DRAINING: msg("ending"),
}
_TOLD = (State.READY, State.DEGRADED, *WAITING)
CONCURRENCY = 8


class Starting:
    """The observer of one start; a context, so that its display ends whatever happens."""

    def __init__(self, lang: str, context: int | None, *, check: bool) -> None:
        self._lang, self._context, self._check = lang, context, check
        self.gateway: Gateway | None = None  # where clients ask instead of the server
        self._display: ExitStack | None = None
        self._show: Observer | None = None
        self._phase = msg("")
        self._end: StateChanged | None = None
        self._ending = False
        self._end_check: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def seen(self, event: Event) -> None:
        """Draw a change of state, and progress within one."""
        if isinstance(event, StateChanged) and event.state is State.DRAINING:
            self._ending = True
            self._end_check()
        with suppress(OSError):  # a terminal that is gone, a pipe that broke, a full disk: none of them ends a server
            self._draw_event(event)

    def _draw_event(self, event: Event) -> None:
        if isinstance(event, StateChanged):
            if event.state in STARTUP and self._show is None:
                self._display = ExitStack()
                self._show = self._display.enter_context(drawn(self._lang))
            if event.state is State.READY and event.previous is not State.DEGRADED:
                self._close()
                self._say(msg("ready after {s:.1f} s: it gave a token", s=event.at_s))
            elif event.state in _TOLD:
                self._close()
                if event.state in WAITING:
                    self._tell_end(event)
                self._say(msg("{state}: {reason}", state=event.state.replace("_", " "), reason=event.reason))
            if event.state in (State.CRASHED, State.FAILED_TO_START):
                self._end = event
                if event.diagnosis is not None and event.diagnosis.suggestion is not None:
                    self._close()
                    self._say(msg("self-heal: {what}", what=event.diagnosis.suggestion))
            self._phase = _PHASES.get(event.state, msg(""))
            self._draw(Progress(self._phase))
        elif isinstance(event, LogSeen) and "total" in event.event.numbers:
            numbers = event.event.numbers
            self._draw(Progress(self._phase, done=int(numbers["done"]), total=int(numbers["total"])))
        elif isinstance(event, StillTaken):
            self._say(msg("waiting to start again: {why}", why=event.note))
        elif isinstance(event, Unwritten):
            self._say(event.reason)

    def ready(self, record: ServerRecord, start: Start) -> Mapping[str, Any] | None:
        """Verify, print the table, then base URL, key, model id and the snippets. Runs in a thread of its own.

        A restart with the same command is not verified anew: clients are waiting, and the load of it is theirs.
        """
        found = None
        if self._check and (start.number == 0 or start.step is not None):
            found = self._verified(record, self._context if start.step is None else None)  # a step may have changed it
        if self._ending:
            return found
        if start.number == 0:
            shown = self.gateway.shown(record) if self.gateway is not None else record
            print(serving.connection(shown, self._lang), flush=True)
        self._say(msg("serving; Ctrl-C ends it"))
        return found

    def _verified(self, record: ServerRecord, context: int | None) -> Mapping[str, Any] | None:
        """In a process of its own, so that what it loads does not stay here; should that break, the server goes on."""
        asked = (record.base_url, record.api_key, record.models[0], context, CONCURRENCY, record.log, self._lang)
        try:
            table, passed = call_apart("trimtab.cli.verify:judged", *asked, begun=self._unless_ending)
        except OSError as error:
            if self._ending:
                self._say(msg("not verified to the end: the server was asked to stop"))
                return None
            self._say(msg("not verified: {why}", why=error))
            return None
        print(table, flush=True)
        return {"verified": passed}

    def _unless_ending(self, end: Callable[[], None]) -> None:
        """Whoever asks a server to stop does not wait for its verification, nor would that judge anything."""
        self._end_check = end
        if self._ending:
            end()

    def _tell_end(self, event: StateChanged) -> None:
        """How the engine ended; where it is not started again, the error that ends the verb says so."""
        if self._end is None:
            return
        cause = event.diagnosis.told if event.diagnosis is not None else None
        state, reason = self._end.state.replace("_", " "), self._end.reason
        self._say(
            msg("{state}: the engine {reason}: {cause}", state=state, reason=reason, cause=cause)
            if cause is not None and str(cause) != str(reason)
            else msg("{state}: the engine {reason}", state=state, reason=reason)
        )

    def _say(self, line: Message) -> None:
        print(line.text(self._lang), file=sys.stderr, flush=True)

    def _draw(self, step: Progress) -> None:
        if self._show is not None and str(step.phase):
            self._show(step)

    def _close(self) -> None:
        if self._display is not None:
            self._display.close()
        self._display = self._show = None
