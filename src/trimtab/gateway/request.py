"""What a client asked, and how it is refused: the values that a connection and whoever answers it speak of."""

from __future__ import annotations

from copy import copy
from typing import Protocol

import msgspec

REASONS = {
    200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
    404: "Not Found",
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


LOWER: dict[bytes, bytes] = {}


def lowered(name: bytes) -> bytes:
    """A header's name in lower case; the usual ones are looked up, which takes a fifth of the time."""
    known = LOWER.get(name)
    if known is None:
        known = name.lower()
        if len(LOWER) < 512:
            LOWER[name] = known
    return known


class Request(msgspec.Struct, gc=False, eq=False):
    """One whole request. `headers` holds the first value of each name, in lower case; names given twice are refused.

    Requests with the same head share `headers`, in which the content-length is the first one's: `body` tells.
    """

    method: bytes = b""
    path: bytes = b""
    query: bytes = b""
    headers: dict[bytes, bytes] = {}
    body: bytes = b""
    keep_alive: bool = True
    old: bool = False  # HTTP/1.0, which knows no chunks
    received: float = 0.0  # monotonic seconds when it was whole
    id: bytes = b""
    digest: bytes = b""  # of the key in `headers`, once it was worked out
    extra: bytes = b""  # header lines of its answer, each ending in CRLF

    def again(self, body: bytes) -> Request:
        """Another request with the same head but for the length."""
        request = copy(self)
        request.body, request.extra = body, b""
        return request


class Refused(Exception):
    """A request that the gateway answers itself.

    `wait_s`: seconds after which it may be sent again (Retry-After); `param`: the field that is wrong; `allow`: the
    methods that the path takes.
    """

    def __init__(
        self, status: int, code: str, message: str, wait_s: int | None = None, *, param: str | None = None,
        allow: bytes = b"",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status, self.code, self.message, self.wait_s = status, code, message, wait_s
        self.param, self.allow = param, allow


def path_of(target: bytes) -> bytes:
    """The path of a target in absolute form, which servers must take (RFC 9112, 3.2.2)."""
    scheme, mark, rest = target.partition(b"://")
    authority, _, path = rest.partition(b"/")
    if not mark or not authority or scheme.lower() not in (b"http", b"https"):
        raise Refused(400, "malformed_request", "the target must be a path")
    return b"/" + path


def framed(request: Request, length: bytes | None) -> None:
    """Refuse what few requests say of their bodies: an upgrade, chunks beside a length, a coding."""
    headers = request.headers
    if b"upgrade" in headers and (b"transfer-encoding" in headers or length not in (None, b"0")):
        # httptools takes no body from a request that asks for an upgrade: what follows would be read as a request
        raise Refused(501, "upgrade_not_supported", "a request with a body cannot ask for an upgrade")
    if b"transfer-encoding" in headers and (
        length is not None or request.old or headers[b"transfer-encoding"].lower() != b"chunked"
    ):
        raise Refused(400, "malformed_request", "transfer-encoding can be chunked alone, without a content-length")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        coding = headers[b"content-encoding"].decode("latin-1")
        raise Refused(415, "content_encoding_not_supported", f"a body in {coding} is not taken: send it as it is")
