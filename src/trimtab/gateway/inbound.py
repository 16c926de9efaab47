"""A client's connection: HTTP/1.1 in, requests one at a time to whoever answers, bytes out; knows nothing of models."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools

MAX_HEAD = 64 << 10  # bytes of request line and headers together
MAX_HEADERS = 100
MAX_WAITING = 4  # pipelined requests kept; then the connection is not read until one is answered
HIGH_WATER = 256 << 10  # bytes unsent at which the answering side is asked to pause
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout", 413: "Content Too Large", 414: "URI Too Long",
    415: "Unsupported Media Type", 417: "Expectation Failed", 422: "Unprocessable Content",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


class Answering(Protocol):
    """What is told of the client of a request that is being answered."""

    def client_lost(self) -> None:
        """The client is gone: nothing more can be sent."""

    def client_slow(self, slow: bool) -> None:
        """The client takes bytes slower than they come (True), or has caught up (False)."""


_LOWER: dict[bytes, bytes] = {}


def lowered(name: bytes) -> bytes:
    """A header's name in lower case; the usual ones are looked up, which takes a fifth of the time."""
    known = _LOWER.get(name)
    if known is None:
        known = name.lower()
        if len(_LOWER) < 512:
            _LOWER[name] = known
    return known


class Request:
    """One whole request. `headers` holds the first value of each name, in lower case; names given twice are refused."""

    __slots__ = ("body", "headers", "id", "keep_alive", "method", "old", "path", "query", "received")

    def __init__(self) -> None:
        self.method = b""
        self.path = b""
        self.query = b""
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.keep_alive = True
        self.old = False  # HTTP/1.0, which knows no chunks
        self.received = 0.0  # monotonic seconds when it was whole
        self.id = b""


class Refused(Exception):
    """A request that the gateway answers itself.

    `wait_s`: seconds after which it may be sent again (Retry-After); `param`: the field that is wrong.
    """

    def __init__(
        self, status: int, code: str, message: str, wait_s: int | None = None, *, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.wait_s, self.param = status, code, message, wait_s, param


Handler = Callable[[Request, "Inbound"], Answering | None]
RefusalBody = Callable[[bytes, Refused, bytes], bytes]
_TWICE_REFUSED = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"authorization", b"x-api-key", b"content-type"}
)


class Inbound(asyncio.Protocol):
    """One connection. `handler` answers through `start`, `send` and `finish`, in the event loop's thread."""

    def __init__(
        self, handler: Handler, refusal: RefusalBody, connections: set[Inbound], *, max_body: int = 32 << 20
    ) -> None:
        self._handler, self._refusal, self._connections, self._max_body = handler, refusal, connections, max_body
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._request: Request | None = None  # being read
        self._headers: dict[bytes, bytes] = {}  # its
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
        self.peer = ""
        self.since = time.monotonic()  # when the state that the sweep bounds began
        self.sent_bytes = 0

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._refused is not None or self._closing:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(Refused(501, "upgrade_not_supported", "this server does not switch protocols"))
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refused) else Refused(400, "malformed_request", "not valid HTTP"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._closing = True
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
        if self._head_size > MAX_HEAD:
            raise Refused(414, "target_too_long", f"more than {MAX_HEAD} bytes of target")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + 4
        if self._head_size > MAX_HEAD:
            raise Refused(431, "headers_too_large", f"more than {MAX_HEAD} bytes of headers")
        name = lowered(name)
        headers = self._headers
        if name in headers:
            if name in _TWICE_REFUSED:
                raise Refused(400, "header_given_twice", f"the header {name.decode('latin-1')} is given twice")
            return
        headers[name] = value
        if len(headers) > MAX_HEADERS:
            raise Refused(431, "too_many_headers", f"more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        request, parser = self._reading, self._parser
        headers = request.headers
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._max_body):
            raise Refused(413, "request_too_large", f"a body of more than {self._max_body} bytes is not taken")
        if b"transfer-encoding" in headers and (length is not None or headers[b"transfer-encoding"] != b"chunked"):
            raise Refused(400, "malformed_request", "transfer-encoding can be chunked alone, without a content-length")
        request.old = parser.get_http_version() != "1.1"
        if b"host" not in headers and not request.old:
            raise Refused(400, "malformed_request", "HTTP/1.1 needs a Host header")
        request.method = parser.get_method()
        request.keep_alive = parser.should_keep_alive() and not request.old
        if headers.get(b"expect", b"").lower() == b"100-continue" and self._answered is None and self._transport:
            self._transport.write(CONTINUE)

    def on_body(self, piece: bytes) -> None:
        self._body_size += len(piece)
        if self._body_size > self._max_body:
            raise Refused(413, "request_too_large", f"a body of more than {self._max_body} bytes is not taken")
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        request, self._request = self._reading, None
        request.body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        path, _, request.query = self._url.partition(b"?")
        if not path.startswith(b"/"):
            raise Refused(400, "malformed_request", "the target must be a path")
        request.path = path
        request.received = self.since = time.monotonic()
        if self._answered is None:
            self._answer(request)
            return
        self._waiting.append(request)
        if len(self._waiting) >= MAX_WAITING and self._transport is not None:
            self._transport.pause_reading()

    @property
    def _reading(self) -> Request:
        assert self._request is not None  # llhttp calls on_message_begin first
        return self._request

    def _answer(self, request: Request) -> None:
        self._answered, self._chunked, self.sent_bytes = request, False, 0
        self._answering = self._handler(request, self)

    # for the one who answers

    @property
    def open(self) -> bool:
        """Whether the client is still there."""
        return not self._closing

    def start(self, head: bytes, *, chunked: bool) -> None:
        """Keep status line and headers, without the empty line, for the first `send`; `chunked`: it comes in chunks."""
        self._chunked = chunked = chunked and self._answered is not None and not self._answered.old
        keep = self._answered is not None and self._answered.keep_alive and self._refused is None
        end = b"\r\n\r\n" if keep else b"\r\nConnection: close\r\n\r\n"
        self._head = head + (b"\r\nTransfer-Encoding: chunked" if chunked else b"") + end

    def send(self, data: bytes) -> None:
        """Send a piece of the body, with the head before the first, even if that is empty."""
        if self._chunked and data:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        head, self._head = self._head, b""
        if head or data:
            self._write(head + data)

    def finish(self, last: bytes = b"") -> None:
        """Send the last piece; the request is answered, and the next one's turn comes."""
        if self._chunked:
            last = (b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last)) if last else b"0\r\n\r\n"
        head, self._head = self._head, b""
        if head or last:
            self._write(head + last)
        request, self._answered, self._answering = self._answered, None, None
        self.since = time.monotonic()
        if self._closing or self._transport is None:
            return
        if request is None or not request.keep_alive or self._refused is not None:
            if self._refused is not None and request is not None:
                self._send_refusal(self._refused)
            self.close()
            return
        if self._waiting:
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

    def close(self) -> None:
        """Send what is waiting, then close."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        if self._transport is not None and not self._closing:
            self._transport.write(data)

    def _refuse(self, refused: Refused) -> None:
        """Answer for the gateway itself; at once, or after the answer that is under way."""
        self._refused = refused
        self._waiting.clear()
        if self._answered is None:
            self._answered = self._request or Request()
            self._send_refusal(refused)
            self.close()

    def _send_refusal(self, refused: Refused) -> None:
        body = self._refusal(self._url, refused, b"")
        head = b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self._write(head % (refused.status, REASONS.get(refused.status, "Status").encode(), len(body)) + body)

    def sweep(self, now: float, *, request_s: float, idle_s: float) -> None:
        """End a connection that sends a request slower than `request_s`, or nothing for `idle_s`."""
        if self._answered is not None or self._closing:
            return
        if self._request is not None and now - self.since > request_s:
            self._refuse(Refused(408, "request_timeout", f"the request was not whole after {request_s:.0f} s"))
        elif self._request is None and now - self.since > idle_s:
            self.close()
