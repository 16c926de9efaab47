"""A client's connection: HTTP/1.1 in, requests one at a time to whoever answers, bytes out; knows nothing of models."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from trimtab.gateway.heads import Seen, seen
from trimtab.gateway.request import LOWER, REASONS, Answering, Refused, Request, framed, lowered, path_of
from trimtab.gateway.turn import turn

MAX_HEAD = 64 << 10  # bytes of request line and headers together
MAX_HEADERS = 100
MAX_WAITING = 4  # pipelined requests kept; then the connection is not read until one is answered
HIGH_WATER = 256 << 10  # bytes unsent at which the answering side is asked to pause
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LEAST_RATE = 32 << 10  # bytes a second of a body, below which a client counts as slow
LINGER_S = 2.0  # for how long what still comes is read after a refusal, so that the client gets to read it
LOOKS_S = (0.005, 0.01, 0.02, 0.04, 0.08)  # after a client's end of sending: whether it is gone or still listens
_TCP_CLOSE = 7  # net/tcp_states.h; the first byte of struct tcp_info


Handler = Callable[[Request, "Inbound"], Answering | None]
RefusalBody = Callable[[bytes, Refused, bytes], bytes]
Told = Callable[[Request, "Inbound", Refused], None]  # of a request that no back end was asked for
_TWICE_REFUSED = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"authorization", b"x-api-key", b"content-type"}
)
_LOOKED_AT = frozenset({b"upgrade", b"transfer-encoding", b"content-encoding", b"expect"})  # most requests have none


class Inbound(asyncio.Protocol):
    """One connection. `handler` answers through `start`, `send` and `finish`, in the event loop's thread."""

    def __init__(
        self,
        handler: Handler,
        refusal: RefusalBody,
        connections: set[Inbound],
        told: Told,
        *,
        max_body: int = 32 << 20,
        max_head: int = MAX_HEAD,
    ) -> None:
        self._handler, self._refusal, self._connections, self._told = handler, refusal, connections, told
        self._max_body, self._max_head = max_body, max_head
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._request: Request | None = None  # being read
        self._headers: dict[bytes, bytes] = {}  # its
        self._seen: Seen[Request] | None = None  # the latest head: the next one mostly has the same bytes
        self._head = b""  # of the answer, not sent yet: it goes with the first piece
        self._url = b""
        self._head_size = self._body_size = 0
        self._pieces: list[bytes] = []
        self._waiting: deque[Request] = deque()
        self._answered: Request | None = None  # being answered
        self._answering: Answering | None = None
        self._refused: Refused | None = None
        self._closing = False
        self._chunked = False
        self._draining = False
        self._eof = False  # whether the client has sent all that it will
        self._probe = b""
        self.address = ""  # of whoever connected
        self.peer = ""  # of the client, which a proxy may have named
        self.since = time.monotonic()  # when the state that the sweep bounds began
        self.sent_bytes = 0

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._turn = turn()
        peer = transport.get_extra_info("peername")
        self.address = self.peer = peer[0] if isinstance(peer, tuple) else ""
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._refused is not None or self._closing:
            return
        alone = self._answered is None and self._request is None
        if alone and self._seen is not None:
            body = self._seen.body_of(data)
            if body is not None and len(body) <= self._max_body:
                request = self._seen.about.again(body)  # between two messages of the parser, which need not see it
                request.keep_alive, request.received = not self._draining, time.monotonic()
                self._answer(request)
                return
        try:
            self._parser.feed_data(data)
            if alone:
                self._remember(data)
        except httptools.HttpParserUpgrade as upgrade:  # not taken up: HTTP/1.1 goes on, as RFC 9110 has it
            self._parser = httptools.HttpRequestParser(self)
            self.data_received(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refused) else Refused(400, "malformed_request", "not valid HTTP"))

    def _remember(self, data: bytes) -> None:
        """Know the head of a request that came alone and whole, without anything that is looked at each time."""
        request = self._answered
        if request is not None and request.keep_alive and self._request is None and not self._waiting:
            self._seen = seen(data, request.body, request) if _LOOKED_AT.isdisjoint(request.headers) else None

    def eof_received(self) -> bool:
        """The client sends no more. It may still read, or be gone: only what is written to it can tell."""
        transport, request = self._transport, self._answered
        if transport is None or request is None or request.old or transport.get_extra_info("sslcontext") is not None:
            return False
        self._eof = True
        if self._head or not self.sent_bytes:
            self._turn.send()
            transport.write(CONTINUE)  # a client that reads must take an interim answer; one that is gone resets
        elif self._probe:
            self.send(self._probe)
        self._look(0)
        return True

    def _look(self, times: int) -> None:
        transport = self._transport
        if transport is None or not self._eof or transport.is_closing():
            return
        state = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        if state[0] == _TCP_CLOSE:
            transport.abort()
        elif times < len(LOOKS_S):
            asyncio.get_running_loop().call_later(LOOKS_S[times], self._look, times + 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._closing = True
        del self._parser  # it points back at this, which goes at once without it, not when gc comes by
        self._waiting.clear()
        answering, self._answering = self._answering, None
        if answering is not None:
            answering.client_lost()

    def pause_writing(self) -> None:
        if self._answering is not None:
            self._answering.client_slow(True)

    def resume_writing(self) -> None:
        if self._answering is not None:
            self._answering.client_slow(False)

    # httptools

    def on_message_begin(self) -> None:
        self._request = request = Request()
        self._headers = request.headers
        self._url, self._pieces = b"", []
        self._head_size = self._body_size = 0
        self.since = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head_size += len(url)
        if self._head_size > self._max_head:
            raise Refused(414, "target_too_long", f"more than {self._max_head} bytes of target")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + 4
        if self._head_size > self._max_head:
            raise Refused(431, "headers_too_large", f"more than {self._max_head} bytes of headers")
        name = LOWER.get(name) or lowered(name)
        headers = self._headers
        if name not in headers:
            headers[name] = value
        elif name in _TWICE_REFUSED:
            raise Refused(400, "header_given_twice", f"the header {name.decode('latin-1')} is given twice")
        elif name == b"x-forwarded-for":  # each proxy may add a line of its own; the last word is what counts
            headers[name] += b"," + value

    def on_headers_complete(self) -> None:
        request, parser = self._request, self._parser
        assert request is not None  # llhttp calls on_message_begin first
        headers, self._headers = request.headers, {}  # a trailer says nothing that is acted on
        if len(headers) > MAX_HEADERS:
            raise Refused(431, "too_many_headers", f"more than {MAX_HEADERS} headers")
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._max_body):
            raise Refused(413, "request_too_large", f"a body of more than {self._max_body} bytes is not taken")
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise Refused(400, "malformed_request", "HTTP/1.1 and HTTP/1.0 are spoken here")
        request.old = version == "1.0"
        if b"host" not in headers and not request.old:
            raise Refused(400, "malformed_request", "HTTP/1.1 needs a Host header")
        request.method = parser.get_method()
        request.keep_alive = parser.should_keep_alive() and not request.old
        if not _LOOKED_AT.isdisjoint(headers):
            framed(request, length)
            if b"expect" in headers:
                self._expected(headers[b"expect"])

    def _expected(self, what: bytes) -> None:
        if what.lower() != b"100-continue":
            raise Refused(417, "expectation_not_met", "of expectations only 100-continue is known")
        if self._answered is None and self._transport is not None:
            self._turn.send()
            self._transport.write(CONTINUE)

    def on_body(self, piece: bytes) -> None:
        self._body_size += len(piece)
        if self._body_size > self._max_body:
            raise Refused(413, "request_too_large", f"a body of more than {self._max_body} bytes is not taken")
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        request, self._request = self._request, None
        assert request is not None
        request.body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        path, _, request.query = self._url.partition(b"?")
        if not path.startswith(b"/"):
            path = path_of(path)
        request.path = path
        request.keep_alive = request.keep_alive and not self._draining
        request.received = self.since = time.monotonic()
        if self._answered is None:
            self._answer(request)
            return
        self._waiting.append(request)
        if len(self._waiting) >= MAX_WAITING and self._transport is not None:
            self._transport.pause_reading()

    def _answer(self, request: Request) -> None:
        self._answered, self._chunked, self.sent_bytes = request, False, 0
        self._answering = self._handler(request, self)

    # for the one who answers

    @property
    def open(self) -> bool:
        """Whether the client is still there."""
        return not self._closing

    def start(self, head: bytes, *, chunked: bool, probe: bytes = b"") -> None:
        """Keep status line and headers, without the empty line, for the first `send`; `chunked`: it comes in chunks.

        `probe`: bytes that mean nothing and may be sent between two pieces, to find out whether the client still reads.
        """
        self._probe = probe
        self._chunked = chunked = chunked and self._answered is not None and not self._answered.old
        keep = self._answered is not None and self._answered.keep_alive and self._refused is None
        end = b"\r\n\r\n" if keep else b"\r\nConnection: close\r\n\r\n"
        if self._answered is not None and self._answered.extra:
            end = b"\r\n" + self._answered.extra[:-2] + end
        self._head = head + (b"\r\nTransfer-Encoding: chunked" if chunked else b"") + end

    def send(self, data: bytes) -> None:
        """Send a piece of the body, with the head before the first, even if that is empty."""
        if self._chunked and data:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self._write(data)

    def finish(self, last: bytes = b"") -> None:
        """Send the last piece; the request is answered, and the next one's turn comes."""
        if self._chunked:
            last = (b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last)) if last else b"0\r\n\r\n"
        head, self._head = self._head, b""
        if head or last:
            self._write(head + last)
        self._next()

    def answer(self, head: bytes, body: bytes) -> None:
        """Send a whole answer: `start` and `finish` in one. `head` has the length of the body."""
        request = self._answered
        if request is None or not request.keep_alive or request.extra or self._refused is not None:
            self.start(head, chunked=False)
            self.finish(body)
        else:
            self._write(b"%b\r\n\r\n%b" % (head, body))
            self._next()

    def _next(self) -> None:
        request, self._answered, self._answering = self._answered, None, None
        self.since = time.monotonic()
        if self._closing or self._transport is None or self._transport.is_closing():
            return
        if request is None or not request.keep_alive or self._refused is not None:
            if self._refused is not None and request is not None:
                self._send_refusal(self._refused)
            else:
                self.close()
            return
        if self._eof and not self._waiting:
            self.close()
        elif self._waiting:
            following = self._waiting.popleft()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_soon(self._answer, following)

    def whole(self, status: int, body: bytes, content_type: bytes = b"application/json", extra: bytes = b"") -> None:
        """Send a whole answer; `extra` are header lines, each ending in CRLF."""
        head = b"HTTP/1.1 %d %b\r\n%bContent-Type: %b\r\nContent-Length: %d" % (
            status, REASONS.get(status, "Status").encode(), extra, content_type, len(body),
        )  # fmt: skip
        self.start(head, chunked=False)
        self.finish(b"" if self._answered is not None and self._answered.method == b"HEAD" else body)

    def refuse(self, request: Request, refused: Refused) -> None:
        """Answer a request with an error in its caller's dialect."""
        extra = b"x-request-id: %b\r\n" % request.id
        if b"/messages" in request.path:
            extra += b"request-id: %b\r\n" % request.id
        if refused.allow:
            extra += b"Allow: %b\r\n" % refused.allow
        if refused.wait_s is not None:
            extra += b"Retry-After: %d\r\n" % refused.wait_s
        self.whole(refused.status, self._refusal(request.path, refused, request.id), extra=extra)

    def cut(self, last: bytes) -> None:
        """Send a last piece, then close without the answer's end: the client sees that it was cut."""
        self.send(last)
        self.close()

    def abort(self) -> None:
        """Cut the connection: what was sent so far cannot be ended as it should."""
        self._closing = True
        self._answering = None
        if self._transport is not None:
            self._transport.abort()

    def drain(self) -> None:
        """Answer what was asked, or is being asked, and close then; at once if that is nothing."""
        self._draining = True
        if self._answered is not None:
            self._answered.keep_alive = False
            self._waiting.clear()
        elif self._request is None:
            self.close()

    def close(self) -> None:
        """Send what is waiting, then close."""
        self._closing = True
        if self._transport is not None:
            self._turn.send()
            self._transport.close()

    def _write(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        if not self._closing and self._transport is not None:
            self._turn.write(self._transport, data)

    def _refuse(self, refused: Refused) -> None:
        """Answer for the gateway itself; at once, or after the answer that is under way."""
        self._refused = refused
        self._waiting.clear()
        if self._answered is None:
            self._answered = self._request or Request()
            self._send_refusal(refused)

    def _send_refusal(self, refused: Refused) -> None:
        unread = self._request or Request()
        unread.path = self._url.partition(b"?")[0] if self._url.startswith(b"/") else b""  # else it may hold a password
        self.peer = self.address
        self._told(unread, self, refused)
        body = self._refusal(self._url, refused, b"")
        head = b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self._write(head % (refused.status, REASONS.get(refused.status, "Status").encode(), len(body)) + body)
        self._closing = True
        self.since = time.monotonic()
        if self._transport is None or self._transport.is_closing():
            return
        self._turn.send()
        if self._transport.can_write_eof():
            self._transport.write_eof()  # what still comes is read and thrown away: see LINGER_S
        else:
            self.close()

    def sweep(self, now: float, *, request_s: float, idle_s: float) -> None:
        """End a connection that sends a request slower than `request_s`, or nothing for `idle_s`."""
        if self._refused is not None and self._closing:
            if now - self.since > LINGER_S and self._transport is not None:
                self._transport.abort()
            return
        if self._answered is not None or self._closing:
            if self._eof:
                self._look(len(LOOKS_S))
            return
        if self._request is not None and now - self.since > request_s + self._body_size / LEAST_RATE:
            self._refuse(Refused(408, "request_timeout", f"the request was not whole after {request_s:.0f} s"))
        elif self._request is None and now - self.since > idle_s:
            self.close()
