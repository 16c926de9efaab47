"""Tell a command or a webhook what happens to a server: ready, degraded, crashed, stepping back, given up.

A thread of its own does it, each call within a bound; what fails is noted in the journal and ends no server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from trimtab.errors import HostError
from trimtab.messages import Message, msg
from trimtab.supervisor.journal import Journal
from trimtab.supervisor.launching import Diagnosis, StateChanged
from trimtab.supervisor.states import State
from trimtab.supervisor.webhook import post

SCHEMA = "trimtab.event/1"
TOLD = frozenset(
    {State.READY, State.DEGRADED, State.FAILED_TO_START, State.CRASHED, State.STEPPING_BACK, State.GIVEN_UP}
)
NOTE = "event"  # what the journal calls a call that failed
COMMAND_S, WEBHOOK_S = 30.0, 10.0
AGAIN_S = 2.0
CLOSE_S = 15.0
_SAID_BYTES = 400


class Listeners(msgspec.Struct, frozen=True):
    """Who is told: shell commands get the event as JSON on stdin, URLs as the body of a POST."""

    commands: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    command_s: float = COMMAND_S
    webhook_s: float = WEBHOOK_S
    again_s: float = AGAIN_S  # after a webhook that failed for the moment
    close_s: float = CLOSE_S


class Teller:
    """Tells each event to all listeners, in order."""

    def __init__(
        self, home: Path, server: Mapping[str, Any], listeners: Listeners, hide: Callable[[str], str] = str
    ) -> None:
        """`server` goes into each event as it is; `hide` takes secrets out of what the log and the diagnosis say."""
        self._home, self._server, self._to, self._hide = home, dict(server), listeners, hide
        self._queue: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def changed(self, event: StateChanged) -> None:
        """Returns at once."""
        if event.state not in TOLD or not (self._to.commands or self._to.webhooks):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="events", daemon=True)
            self._thread.start()
        self._queue.put(self._told(event))

    def close(self) -> None:
        """Wait until the last event is told, within a bound: it is the one that says why a server ended."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(self._to.close_s)

    def _told(self, event: StateChanged) -> dict[str, Any]:
        known = event.diagnosis is not None and event.diagnosis.told is not None and event.state is not State.READY
        diagnosis = _diagnosis(event.diagnosis) if event.diagnosis is not None and known else None
        said = {"event": event.state.value, "previous": event.previous.value, "reason": str(event.reason)}
        return {
            "schema": SCHEMA, "at": time.time(), "since_start_s": round(event.at_s, 3), **self._server,
            **self._hidden({**said, "diagnosis": diagnosis}),
        }  # fmt: skip

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._hide(value)
        if isinstance(value, Mapping):
            return {key: self._hidden(inner) for key, inner in value.items()}
        return [self._hidden(inner) for inner in value] if isinstance(value, list | tuple) else value

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            body = msgspec.json.encode(event, enc_hook=str)
            for command in self._to.commands:
                self._note(event, run_listener(command, body, event, self._to.command_s))
            for url in self._to.webhooks:
                failed = post(url, body, self._to.webhook_s)
                if failed is not None and failed.passing:
                    time.sleep(self._to.again_s)
                    failed = post(url, body, self._to.webhook_s)
                self._note(event, failed.why if failed is not None else None)

    def _note(self, event: Mapping[str, Any], failed: Message | None) -> None:
        if failed is None:
            return
        with suppress(HostError):  # the supervisor itself tells when its directory cannot be written
            journal = Journal(self._home)
            journal.append(NOTE, reason=failed, data={"event": event["event"]})
            journal.close()


def _diagnosis(found: Diagnosis) -> dict[str, Any]:
    """`cause` is a sentence, `cause_id` its name among the doctor's causes."""
    shown: dict[str, Any] = dict(found.data)
    shown |= {"cause_id": found.data.get("cause"), "cause": str(found.told), "errors": list(found.errors)}
    if found.suggestion is not None:
        shown["suggestion"] = str(found.suggestion)
    if found.step is not None:
        step = found.step
        shown["step"] = {"flag": step.flag, "before": step.before, "after": step.after, "why": str(step.why)}
    return shown


def run_listener(command: str, body: bytes, event: Mapping[str, Any], bound_s: float) -> Message | None:
    """Run `command` in a shell with `body` on stdin; why it failed, None when it did not. Its group is ended after
    `bound_s`; what it leaves running in the background before that may stay.
    """
    env = {**os.environ, "TRIMTAB_EVENT": str(event["event"]), "TRIMTAB_SERVER_NAME": str(event.get("name", ""))}
    try:
        return _run(command, body, env, bound_s)
    except OSError as error:  # also a full disk
        return msg("the command for events cannot be started: {reason}", reason=error.strerror or error)


def _run(command: str, body: bytes, env: Mapping[str, str], bound_s: float) -> Message | None:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:  # a pipe would wait for grandchildren
        given.write(body + b"\n")
        given.seek(0)
        child = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=given, stdout=said, stderr=said, env=env, start_new_session=True
        )
        try:
            code = child.wait(bound_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return msg("the command for events was ended after {s:.0f} s", s=bound_s)
        if code == 0:
            return None
        said.seek(0)
        lines = said.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return msg("the command for events ended with exit code {code}", code=code)
    return msg("the command for events ended with exit code {code}: {last}", code=code, last=lines[-1][:_SAID_BYTES])
