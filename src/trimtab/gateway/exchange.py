"""One request from admission to its last byte: the one place where client and back end meet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from trimtab.gateway import body as bodies
from trimtab.gateway.admission import Key
from trimtab.gateway.config import Bounds
from trimtab.gateway.errors import body as error_body
from trimtab.gateway.inbound import REASONS, Inbound, Refused, Request
from trimtab.gateway.outbound import Outbound
from trimtab.gateway.routes import Route, Target
from trimtab.gateway.usage import BodyUsage, Ledger, Record, StreamUsage, Usage

WITHOUT_V1 = frozenset({b"/tokenize", b"/detokenize", b"/rerank", b"/score", b"/classify", b"/pooling"})
USAGE_ON_REQUEST = frozenset({b"/chat/completions", b"/completions"})  # streams that tell usage only when asked
_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"trailer",
                  b"proxy-authenticate", b"proxy-connection", b"server", b"date"})  # fmt: skip
RETRIED = frozenset({429, 500, 502, 503, 504})  # answers after which a fall-back is asked instead, where there is one


class Exchange:
    """The receiver of a back end's answer and of the client's leaving."""

    __slots__ = (
        "_asked",
        "_begun",
        "_body",
        "_bounds",
        "_client",
        "_connection",
        "_ended",
        "_first_byte",
        "_held",
        "_is_over",
        "_key",
        "_last",
        "_ledger",
        "_long",
        "_path",
        "_request",
        "_route",
        "_slow",
        "_started",
        "_status",
        "_target",
        "_task",
        "_tried",
        "_usage",
    )  # fmt: skip

    def __init__(
        self, client: Inbound, request: Request, path: bytes, key: Key, route: Route, asked: bodies.Asked,
        ledger: Ledger, bounds: Bounds, ended: Callable[[Exchange], None], held: int, long: bool,
    ) -> None:  # fmt: skip
        self._client, self._request, self._path, self._key = client, request, path, key
        self._route, self._asked, self._ledger, self._bounds = route, asked, ledger, bounds
        self._connection: Outbound | None = None
        self._target: Target | None = None
        self._tried: list[Target] = []
        self._task: asyncio.Task[None] | None = None
        self._usage: BodyUsage | StreamUsage | None = None
        self._begun = self._slow = False  # whether the client was sent anything
        self._started = self._last = request.received
        self._first_byte = 0.0
        self._status = 0
        self._ended, self._is_over = ended, False
        self._held, self._long = held, long

    def begin(self) -> None:
        """Ask the first back end."""
        self._ask(self._route.choose())

    def _ask(self, target: Target | None) -> None:
        if target is None:
            if self._tried:
                self._fail(502, "back_end_failed", f"no back end of {self._asked.model} gave an answer")
            else:
                self._fail(503, "no_back_end", f"every back end of {self._asked.model} is down; try again in a moment")
            return
        self._target = target
        self._tried.append(target)
        target.back_end.outstanding += 1
        connection = target.back_end.pool.take()
        if connection is None:
            self._task = asyncio.ensure_future(self._dial(target))
        else:
            self._send(connection)

    async def _dial(self, target: Target) -> None:
        try:
            connection = await target.back_end.pool.dial(self._bounds.connect)
        except (OSError, TimeoutError) as error:
            self._task = None
            self._next(f"cannot connect ({error or 'timed out'})")
            return
        self._task = None
        self._send(connection)

    def _send(self, connection: Outbound) -> None:
        assert self._target is not None
        self._connection = connection
        connection.send(self._wire(self._target), self)

    def _wire(self, target: Target) -> bytes:
        """The request as it goes to `target`."""
        asked, request, back_end = self._asked, self._request, target.back_end
        body = request.body
        streamed = asked.stream is True
        hide = streamed and self._path in USAGE_ON_REQUEST
        if hide:
            options = asked.stream_options
            hide = options is None or not options.include_usage
        self._usage = StreamUsage(hide=hide) if streamed else BodyUsage()
        renamed = target.model if target.model != asked.model else None
        if renamed is not None or hide:
            body = bodies.changed(body, model=renamed, ask_usage=hide)
        prefix = b"" if self._path in WITHOUT_V1 else b"/v1"
        return b"POST %b%b%b HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b" % (
            back_end.prefix, prefix, self._path, back_end.fixed, len(body), _passed_on(request.headers), body,
        )  # fmt: skip

    # the back end

    def answer_begins(self, connection: Outbound) -> None:
        assert self._target is not None
        now = time.monotonic()
        self._first_byte, self._last, self._status = now - self._started, now, connection.status
        if connection.status in RETRIED:
            self._target.back_end.failed() if connection.status != 429 else None
            following = self._route.choose(self._tried)
            if following is not None:
                self._leave(cut=True)
                self._ask(following)
                return
        else:
            self._target.back_end.succeeded()
        self._begun = True
        chunked = connection.length < 0
        hides = isinstance(self._usage, StreamUsage)
        lines = [b"HTTP/1.1 %d %b" % (connection.status, REASONS.get(connection.status, "Status").encode())]
        lines += [b"%b: %b" % pair for pair in connection.headers if pair[0] not in _HOP]
        if connection.status != 200:
            self._usage = None
        if not chunked and not (hides and self._usage):
            lines.append(b"content-length: %d" % connection.length)
        self._client.start(b"\r\n".join(lines), chunked=chunked or bool(hides and self._usage))

    def answer_piece(self, data: bytes) -> None:
        self._last = time.monotonic()
        self._client.send(self._usage.pass_on(data) if self._usage is not None else data)

    def answer_ends(self, last: bytes) -> None:
        self._connection = None
        if self._usage is not None:
            last = self._usage.pass_on(last) + self._usage.rest()
        client = self._client
        self._over(self._usage.usage() if self._usage is not None else None)
        client.finish(last)

    def answer_breaks(self, reason: str) -> None:
        connection, self._connection = self._connection, None
        if self._begun:
            self._status = 502
            client = self._client
            if self._target is not None:
                self._target.back_end.failed()
            self._over(self._usage.usage() if self._usage is not None else None)
            client.abort()  # the client sees a cut stream, not one that ended
            return
        if connection is not None and connection.used > 1:  # it was closed while idle: ask the same one again
            self._again()
            return
        self._next(reason)

    def _again(self) -> None:
        assert self._target is not None
        target = self._target
        target.back_end.outstanding -= 1
        self._tried.remove(target)
        target.back_end.pool.close()
        self._ask(target)

    def _next(self, reason: str) -> None:
        """The back end failed before it said a word: ask another."""
        assert self._target is not None
        self._target.back_end.failed()
        self._leave(cut=True)
        self._ask(self._route.choose(self._tried))

    # the client

    def client_lost(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._status = self._status or 499
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None
        self._over(self._usage.usage() if self._usage is not None else None)

    def client_slow(self, slow: bool) -> None:
        if self._connection is not None:
            self._connection.pause(slow)

    # the end

    def sweep(self, now: float) -> None:
        """End what takes longer than its bound."""
        bounds = self._bounds
        if now - self._started > bounds.total:
            what = f"the answer was not whole after {bounds.total:.0f} s"
        elif self._begun and now - self._last > bounds.between:
            what = f"the back end said nothing for {bounds.between:.0f} s"
        elif not self._begun and now - self._last > bounds.first_byte:
            what = f"the back end gave no answer within {bounds.first_byte:.0f} s"
        else:
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._leave(cut=True)
        if self._begun:
            client = self._client
            self._status = 504
            self._over(None)
            client.abort()
        else:
            self._fail(504, "back_end_timeout", what)

    def _leave(self, *, cut: bool) -> None:
        if self._target is not None:
            self._target.back_end.outstanding -= 1
            self._target = None
        connection, self._connection = self._connection, None
        if cut and connection is not None:
            connection.abandon()

    def _fail(self, status: int, code: str, message: str) -> None:
        self._status = status
        client, path = self._client, self._path
        self._over(None)
        client.whole(status, error_body(path, Refused(status, code, message)))

    def _over(self, usage: Usage | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._ended(self)
        target = self._target
        name = target.back_end.name if target is not None else self._tried[-1].back_end.name if self._tried else ""
        self._leave(cut=False)
        told = usage or Usage()
        prompt, completion = told.prompt_tokens, told.completion_tokens or 0
        cached = (told.prompt_tokens_details.cached_tokens or 0) if told.prompt_tokens_details else 0
        self._key.leave(time.time(), self._asked.model, prompt + completion, self._held, self._long)
        self._ledger(
            Record(
                self._key.id, self._route.name, name, self._path.decode("latin-1"), self._status, prompt, completion,
                cached, time.monotonic() - self._started, self._first_byte, usage is not None,
            )
        )  # fmt: skip


def _passed_on(headers: dict[bytes, bytes]) -> bytes:
    """Header lines of the request that the back end is told of."""
    found = headers.get(b"x-request-id")
    return b"X-Request-Id: %b\r\n" % found if found else b""
