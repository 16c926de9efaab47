"""One request from admission to its last byte: the one place where client and back end meet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import partial

from trimtab.gateway import body as bodies
from trimtab.gateway import errors
from trimtab.gateway.admission import Key
from trimtab.gateway.attempt import Attempt, wire
from trimtab.gateway.flow import Flow, Held, Plain, Renamed, Translated, has_said_all, names, next_number, renamed
from trimtab.gateway.inbound import Inbound
from trimtab.gateway.outbound import Outbound, Told
from trimtab.gateway.paths import Served
from trimtab.gateway.request import Refused, Request
from trimtab.gateway.routes import Between, Route, Target
from trimtab.gateway.usage import KEPT, NOTHING, BodyUsage, Record, StreamUsage, Usage, of_body

# Answers after which another target is asked, where there is one: the fault may be the back end's alone.
RETRIED = frozenset({401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529})
_FAILED = frozenset({502, 503, 504, 529})  # those that count against the back end
_GENERATING = frozenset({"chat", "completions", "responses", "messages"})
BUSY_S, MAX_BUSY_S = 1, 60  # for how long one that answered 429 is passed over: without and with Retry-After


class Exchange:
    """Asks one back end after the other until one answers, and passes its answer on."""

    # What no usual request sets is said here, once: setting a field takes as long as a small decision.
    _won: Attempt | None = None  # whose answer is passed on
    _flow: Flow | None = None
    _events: StreamUsage | None = None
    _head: bytes | None = None  # of the answer, until its first piece is there
    _length = -1  # of the body, where it is known
    _first_byte = 0.0
    _status = 0
    _streamed = _is_over = _paused = False
    _wait_s: int | None = None  # what a 429 asked for
    _hedge: asyncio.TimerHandle | None = None

    def __init__(
        self, client: Inbound, request: Request, served: Served, key: Key, route: Route, between: Between,
        asked: bodies.Asked, over: Callable[[Exchange, Record, Target | None], None], held: int, long: bool,
    ) -> None:  # fmt: skip
        self._client, self._request, self._served, self._key = client, request, served, key
        self._route, self._between, self._asked, self._over_with = route, between, asked, over
        self._attempts: list[Attempt] = []  # under way: one, or two when hedged
        self._tried: list[Target] = []
        self.started = self._last = request.received
        self._held, self._long = held, long  # what the key counted at the beginning

    def begin(self) -> None:
        """Ask the first back end."""
        self._ask()
        after = self._route.hedge_after
        if after is not None and not self._is_over:
            self._hedge = asyncio.get_running_loop().call_later(after, self._ask_another)

    def _ask_another(self) -> None:
        """Beside the one that is being asked."""
        self._hedge = None
        self._ask()

    def _ask(self) -> None:
        """Ask the next one; when there is none and nobody is being asked, the request has failed."""
        target = self._route.choose(self._served, self._between, self._request.body, self._tried)
        if target is None:
            if self._attempts:
                return
            target = self._route.least_bad(self._served, self._between, self._tried)
            if target is None:
                self._give_up()
                return
        self._tried.append(target)
        speaks = target.back_end.speaks
        translation = None if self._served.protocol in speaks else self._between(self._served.path, speaks)
        try:
            data = wire(self._request, self._served, self._asked, target, translation)
        except Refused as refused:
            self._fail(refused)
            return
        attempt = Attempt(self, target, translation, data)
        self._attempts.append(attempt)
        attempt.begin()

    def _give_up(self) -> None:
        model = self._asked.model
        if self._wait_s is not None:
            told = f"every back end of {model} is at its limit"
            self._fail(Refused(429, "back_end_busy", told, self._wait_s))
        elif self._tried:
            self._fail(Refused(502, "back_end_failed", f"no back end of {model} gave an answer"))
        else:
            self._fail(Refused(503, "no_back_end", f"every back end of {model} is down", 1))

    # the back ends, up to the head of an answer

    def attempt_fails(self, attempt: Attempt, reason: str) -> None:
        self._attempts.remove(attempt)
        if not self._attempts:
            self._ask()

    def attempt_answers(self, attempt: Attempt, connection: Outbound) -> None:
        status = connection.status
        if status in RETRIED and self._passes_over(attempt, connection):
            return
        if len(self._attempts) > 1 or self._hedge is not None:
            self._stop_others(attempt)
        self._attempts.clear()
        self._won = attempt
        connection.receiver = self
        now = time.monotonic()
        self._first_byte, self._last, self._status = now - self.started, now, status
        if self._paused:
            connection.pause(True)
        self._read_head(attempt, connection)

    def _stop_others(self, attempt: Attempt) -> None:
        for other in self._attempts:
            if other is not attempt:
                other.stop()
        if self._hedge is not None:
            self._hedge.cancel()
            self._hedge = None

    def _passes_over(self, attempt: Attempt, connection: Outbound) -> bool:
        """Whether another target is asked instead of passing this answer on."""
        status, target = connection.status, attempt.target
        if status in _FAILED:
            target.back_end.failed()
        elif status == 429:
            asked_for = _retry_after(connection.told.headers)
            target.busy_until = time.monotonic() + min(asked_for or BUSY_S, MAX_BUSY_S)
            self._wait_s = min(asked_for or BUSY_S, self._wait_s or MAX_BUSY_S)
        others = [a for a in self._attempts if a is not attempt]
        if not others and self._none_left():
            return False
        attempt.stop()
        self._attempts = others
        if not others:
            self._ask()
        return True

    def _read_head(self, attempt: Attempt, connection: Outbound) -> None:
        told, target = connection.told, attempt.target
        status = told.status
        if status < 500 and status not in RETRIED:
            target.back_end.succeeded()
        head = told
        if status >= 400 and (status == 401 or not told.is_json):
            self._status = 502 if status == 401 else status  # 401 means the gateway's own key: the client's is right
            others = [header for header in told.headers if header[0] != b"content-type"]
            head = Told(self._status, [*others, (b"content-type", b"application/json")])
        self._head, self._length = b"%b\r\nx-request-id: %b" % (head.text, self._request.id), connection.length
        if b"/messages" in self._request.path:
            self._head += b"\r\nrequest-id: " + self._request.id  # the name that Anthropic's clients read
        if target.level:
            self._head += b"\r\nx-trimtab-fall-back: %b" % target.model.encode("latin-1", "replace")
        if told.is_events:
            self._streamed = True
            self._head += b"\r\nx-accel-buffering: no"  # nginx passes events on as they come
        usual = told.is_json and connection.whole and status < 400 and attempt.translation is None
        if not (usual and 0 < connection.length <= KEPT):  # else no flow is needed: see `_answer_whole`
            self._flow = self._flow_of(attempt, told)

    def _flow_of(self, attempt: Attempt, told: Told) -> Flow:
        """What is done to the answer's bytes."""
        status = told.status
        translation, target = attempt.translation, attempt.target
        if status >= 400:
            if status == 401 or not told.is_json:
                return Held(None, partial(self._worded, status))
            return Plain() if translation is None else Held(None, partial(translation.error, status))
        flow: Flow
        if self._streamed:
            options = self._asked.stream_options
            hide = self._served.asks_usage and (options is None or not options.include_usage)
            delta = b'"text":' if self._served.protocol == "completions" else b'"delta":'
            if translation is None:
                self._events = StreamUsage(hide=hide, delta=delta, names=names(target.model, self._asked.model))
                return self._events
            self._events = StreamUsage(hide=False, delta=delta)
            flow = Translated(self._events, translation.stream())
        else:
            flow = BodyUsage()
            flow = flow if translation is None else Held(flow, translation.answer)
        if target.model != self._asked.model and (self._streamed or told.is_json):
            flow = Renamed(flow, target.model, self._asked.model, streamed=self._streamed, length=self._length)
        return flow

    def _worded(self, status: int, body: bytes) -> bytes:
        """An error that is no JSON, or about the gateway's own key, in the caller's dialect."""
        refused = Refused(status, "back_end_error", f"the back end answered {status}")
        if status == 401:
            refused = Refused(502, "back_end_refused_key", "the back end does not take the gateway's key")
        return errors.body(self._request.path, refused, self._request.id)

    # the answer that is passed on

    def answer_begins(self, connection: Outbound) -> None:
        raise AssertionError("the head was taken already")

    def answer_piece(self, data: bytes) -> None:
        flow = self._flow
        assert flow is not None
        self._last = time.monotonic()
        out = flow.pass_on(data)
        if self._head is not None:
            if flow.whole or not (data or self._streamed):
                return
            self._open(len(out) - len(data))
        self._client.send(out)

    def answer_ends(self, last: bytes) -> None:
        flow, client = self._flow, self._client
        assert self._won is not None
        self._won.connection = None
        if flow is None:
            self._answer_whole(last, self._won.target)
            return
        try:
            out = flow.pass_on(last) + flow.rest()
        except Refused as refused:  # a translation found no answer in it
            self._fail(refused)
            return
        if self._head is not None:
            if flow.whole:
                self._length = len(out)
            self._open(0 if flow.whole else len(out) - len(last))
        self._over(flow.usage())
        client.finish(out)

    def _answer_whole(self, body: bytes, target: Target) -> None:
        """The usual answer, JSON that came in one piece: its usage is read, its model's name put back."""
        usage, client, asked = of_body(body), self._client, self._asked.model
        body = renamed(body, target.model, asked)
        assert self._head is not None
        head = b"%b\r\ncontent-length: %d" % (self._head, len(body))
        self._over(usage)
        client.answer(head, body)

    def _open(self, longer: int) -> None:
        """Give the client the head of the answer, whose body is `longer` than the back end said."""
        head, self._head = self._head, None
        assert head is not None
        length = self._length + longer if self._length >= 0 and not self._streamed else -1
        bodiless = self._status in (204, 304)
        if length >= 0 and not bodiless:
            head += b"\r\ncontent-length: %d" % length
        probe = b":\n\n" if self._streamed else b""
        self._client.start(head, chunked=length < 0 and not bodiless, probe=probe)

    def answer_breaks(self, reason: str) -> None:
        assert self._won is not None
        self._won.connection = None
        self._won.target.back_end.failed()
        self._break(Refused(502, "back_end_failed", f"the back end's answer broke off: {reason}"))

    def _break(self, refused: Refused) -> None:
        """The answer cannot go on. A stream ends with an error event and without its last chunk; a body is cut."""
        if self._head is not None:
            self._fail(refused)
            return
        client, request, flow = self._client, self._request, self._flow
        last = errors.event(self._served.path, refused, request.id, next_number(flow)) if self._streamed else None
        self._status = refused.status
        self._over(flow.usage() if flow is not None else None)
        if last is not None:
            client.cut(last)
        else:
            client.abort()

    # the client

    def client_lost(self) -> None:
        if not has_said_all(self._flow):
            self._status = 499
        self._over(self._flow.usage() if self._flow is not None else None)

    def client_slow(self, slow: bool) -> None:
        self._paused = slow
        self._last = time.monotonic()  # what either side waited for until now is not the other's doing
        if self._won is not None and self._won.connection is not None:
            self._won.connection.pause(slow)

    # the end

    def sweep(self, now: float) -> None:
        """End what takes longer than its bound."""
        won = self._won
        if won is not None:
            bounds = won.target.back_end.bounds
            if now - self.started > bounds.total:
                self._break(Refused(504, "back_end_timeout", f"the answer was not whole after {bounds.total:g} s"))
            elif now - self._last > bounds.between and not self._paused:
                won.target.back_end.failed()
                self._break(Refused(504, "back_end_timeout", f"the back end said nothing for {bounds.between:g} s"))
            elif now - self._last > bounds.between:
                self._client.abort()  # it does not read
                self.client_lost()
            return
        late = [a for a in self._attempts if now - a.since > a.target.back_end.bounds.first_byte]
        for attempt in late:
            attempt.target.back_end.failed()
            attempt.stop()
            self._attempts.remove(attempt)
        if late and not self._attempts:
            bounds = late[-1].target.back_end.bounds
            if now - self.started > bounds.total or self._none_left():
                self._fail(Refused(504, "back_end_timeout", f"no answer began within {bounds.first_byte:g} s"))
            else:
                self._ask()

    def _none_left(self) -> bool:
        asked = self._served, self._between
        return (
            self._route.choose(*asked, b"", self._tried) is None and self._route.least_bad(*asked, self._tried) is None
        )

    def _fail(self, refused: Refused) -> None:
        self._status = refused.status
        client, request = self._client, self._request
        self._over(None)
        client.refuse(request, refused)

    def _over(self, usage: Usage | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._hedge is not None:
            self._hedge.cancel()
        won = self._won
        estimated = self._estimated() if usage is None else None
        if self._attempts:
            for attempt in self._attempts:
                attempt.stop()
            self._attempts.clear()
        now = time.monotonic()
        name, paid_as = self._tried[-1].back_end.name if self._tried else "", ""
        if won is not None:
            self._won = None  # it points back here: without a cycle the memory is free at once
            name, paid_as = won.target.back_end.name, won.target.name
            won.stop()  # leaves; cuts the connection unless its answer was whole
        told = usage or estimated or NOTHING
        self._key.leave(time.time(), self._asked.model, told.prompt + told.completion, self._held, self._long)
        trace = self._request.headers.get(b"traceparent")
        record = Record(
            self._key.id, self._route.name, name, self._served.name, self._status, told.prompt, told.completion,
            told.cached, now - self.started, self._first_byte, usage is not None, self._request.id.decode("latin-1"),
            self._client.peer, "" if trace is None else trace.decode("latin-1"), paid_as,
        )  # fmt: skip
        self._over_with(self, record, None if estimated is None else self._tried[-1])

    def _estimated(self) -> Usage | None:
        """What a request used of which no back end told it: its prompt by its bytes, its answer by its events."""
        if self._served.protocol not in _GENERATING:
            return None
        if self._won is None:
            sent = self._status == 499 and any(a.connection is not None for a in self._attempts)
            return Usage(self._held) if sent else None
        if self._status >= 400 and self._status != 499 and not self._streamed:
            return None
        return Usage(self._held, self._events.deltas if self._events is not None else 0)

    @property
    def body(self) -> bytes:
        """Of the request."""
        return self._request.body


def _retry_after(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Seconds that a 429 asks to wait (RFC 9110, section 10.2.3: seconds, or a date)."""
    value = next((value for name, value in headers if name == b"retry-after"), b"").strip()
    if value.isdigit():
        return min(int(value[:9]), 86400)
    try:
        return max(0, round(parsedate_to_datetime(value.decode("latin-1")).timestamp() - time.time()))
    except ValueError:
        return None
