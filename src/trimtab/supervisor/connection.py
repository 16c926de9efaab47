"""One kept HTTP connection to a server of this host, on the standard library alone; no answer is a value, not raised.

An HTTP library costs three times as much a request, which is most of what watching a server that is at rest costs.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

MOST_BYTES = 32 * 2**20  # of one answer


class Answer(msgspec.Struct, frozen=True):
    """What came of one request; `status` 0: no whole answer. `late`: it was sent and waited for until the bound."""

    status: int = 0
    body: bytes = b""
    late: bool = False


class Connection:
    """Kept between requests, and opened again when the server has closed it. Proxies of the environment do not count.

    For one thread at a time.
    """

    def __init__(self, url: str, headers: Mapping[str, str], bound_s: float) -> None:
        """`bound_s` is for connecting, and then for each wait for more of an answer."""
        parts = urlsplit(url)
        self._http = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80)
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._bound_s = bound_s

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None, self._bound_s)

    def post(self, path: str, body: bytes, bound_s: float) -> Answer:
        """POST `body`, which is JSON."""
        return self._ask("POST", path, body, bound_s)

    def close(self) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, body: bytes | None, bound_s: float) -> Answer:
        kept = self._http.sock is not None
        answer = self._try(method, path, body, bound_s)
        if kept and not answer.status and not answer.late:  # closed by the server, which keeps it for some seconds
            answer = self._try(method, path, body, bound_s)
        return answer

    def _try(self, method: str, path: str, body: bytes | None, bound_s: float) -> Answer:
        try:
            self._open(bound_s)
        except OSError:
            return Answer()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            self._http.request(method, path, body, headers)
            reply = self._http.getresponse()
            body_read = reply.read(MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Answer(late=isinstance(error, TimeoutError))
        whole = not reply.length or len(body_read) == MOST_BYTES
        if reply.length:
            self.close()  # cut off, or the rest would be read as the next answer
        return Answer(reply.status, body_read) if whole else Answer()

    def _open(self, bound_s: float) -> None:
        self._http.timeout = bound_s
        if self._http.sock is None:
            self._http.connect()
        self._http.sock.settimeout(bound_s)
