"""One back end asked once: dialing, the request as it goes there, and whatever happens before its answer begins."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from trimtab.gateway import body as bodies
from trimtab.gateway.outbound import Outbound
from trimtab.gateway.paths import SERVED, Served
from trimtab.gateway.request import Request
from trimtab.gateway.routes import Target, Translation

ANTHROPIC_VERSION = b"2023-06-01"  # what is asked for when the client names none
PASSED_ON = (b"traceparent", b"tracestate", b"openai-beta", b"anthropic-beta")
_PASSED_ON = frozenset({*PASSED_ON, b"anthropic-version"})


class Asking(Protocol):
    """Who wants the answer."""

    def attempt_answers(self, attempt: Attempt, connection: Outbound) -> None:
        """The head of an answer is there: take the connection over (`connection.receiver`), or stop the attempt."""

    def attempt_fails(self, attempt: Attempt, reason: str) -> None:
        """There will be no answer; the attempt has ended."""


class Attempt:
    """Counts as outstanding at its back end until `stop` or `leave`."""

    __slots__ = ("_asking", "_probe", "_task", "_wire", "connection", "ended", "since", "target", "translation")

    def __init__(self, asking: Asking, target: Target, translation: Translation | None, wire: bytes) -> None:
        self._asking, self._wire = asking, wire
        self.target, self.translation = target, translation
        self._task: asyncio.Task[None] | None = None
        self.connection: Outbound | None = None
        self.since = time.monotonic()
        self.ended = False
        self._probe = target.back_end.enter()

    def begin(self) -> None:
        """Send the request on an idle connection, else on a new one."""
        connection = self.target.back_end.pool.take()
        if connection is None:
            self._task = asyncio.ensure_future(self._dial())
        else:
            self.connection = connection
            connection.send(self._wire, self)

    async def _dial(self) -> None:
        back_end = self.target.back_end
        try:
            connection = await back_end.pool.dial(back_end.bounds.connect)
        except TimeoutError:
            self._fail(f"no connection within {back_end.bounds.connect:g} s")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: a name that is none
            self._fail(f"no connection ({error})")
        else:
            self._task = None
            self.connection = connection
            connection.send(self._wire, self)

    def stop(self) -> None:
        """Nobody wants the answer any more: the connection is cut."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
        if self.connection is not None:
            connection, self.connection = self.connection, None
            connection.abandon()
        if not self.ended:
            self.leave()

    def leave(self) -> None:
        """The back end has nothing more to do with it."""
        if not self.ended:
            self.ended = True
            self.target.back_end.leave(self._probe)

    def _fail(self, reason: str) -> None:
        self._task = self.connection = None
        self.target.back_end.failed()
        self.leave()
        self._asking.attempt_fails(self, reason)

    # the answer's receiver, up to its head

    def answer_begins(self, connection: Outbound) -> None:
        self._asking.attempt_answers(self, connection)

    def answer_piece(self, data: bytes) -> None:
        raise AssertionError("who took the head takes the body")

    def answer_ends(self, last: bytes) -> None:
        raise AssertionError("who took the head takes the body")

    def answer_breaks(self, reason: str) -> None:
        connection, self.connection = self.connection, None
        if connection is not None and connection.used > 1 and not connection.spoke:
            self.target.back_end.pool.close()  # it was closed while idle, as the others may be
            self.begin()
            return
        self._fail(reason)


def wire(
    request: Request, served: Served, asked: bodies.Asked, target: Target, translation: Translation | None
) -> bytes:
    """The request as it goes to `target`. Refused 400 when the translation has no words for it."""
    back_end, headers, body = target.back_end, request.headers, request.body
    if translation is not None:
        body, served = translation.request(body), SERVED[translation.path]
    ask_usage = asked.stream is True and served.asks_usage and translation is None and _is_silent(served.path, asked)
    renamed = target.model if target.model != asked.model else None
    if served.form:
        content_type = headers[b"content-type"]
        body = bodies.form_renamed(body, content_type, renamed) if renamed is not None else body
    else:
        content_type = b"application/json"
        if renamed is not None or ask_usage:
            body = bodies.changed(body, model=renamed, ask_usage=ask_usage)
    more = b""
    if back_end.kind == "anthropic" or not _PASSED_ON.isdisjoint(headers):
        more = _more(headers, back_end.kind)
    return b"%b%b\r\nContent-Length: %d\r\nX-Request-Id: %b\r\n%b\r\n%b" % (
        back_end.begins(served), content_type, len(body), request.id, more, body,
    )  # fmt: skip


def _more(headers: dict[bytes, bytes], kind: str) -> bytes:
    more = b"".join([b"%b: %b\r\n" % (name, headers[name]) for name in PASSED_ON if name in headers])
    if b"anthropic-version" in headers or kind == "anthropic":
        more += b"anthropic-version: %b\r\n" % headers.get(b"anthropic-version", ANTHROPIC_VERSION)
    return more


def _is_silent(path: bytes, asked: bodies.Asked) -> bool:
    if path not in (b"/chat/completions", b"/completions"):
        return False
    return asked.stream_options is None or not asked.stream_options.include_usage
