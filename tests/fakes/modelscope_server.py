"""A server on a real socket that speaks the part of ModelScope's API that its client uses for a download."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.fakes.listening import listening


class FakeModelScope:
    """The models it has, and what it was asked for."""

    def __init__(self) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.denied: set[str] = set()
        self.paths: list[str] = []
        self.endpoint = ""


@contextmanager
def serve_modelscope() -> Iterator[FakeModelScope]:
    """Run a `FakeModelScope` on a free port of this host."""
    found = FakeModelScope()

    class Handler(_Handler):
        state = found

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    with listening(server):
        yield found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: FakeModelScope

    def log_message(self, *_: object) -> None:
        """Tests read `FakeModelScope.paths`."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.state.paths.append(f"{self.command} {self.path}")
        parts = urlsplit(self.path)
        words, query = parts.path.strip("/").split("/"), parse_qs(parts.query)
        if words[:3] != ["api", "v1", "models"] or len(words) < 5:
            return self._json(404, {"Code": 404, "Message": "not found", "Success": False})
        model = "/".join(words[3:5])
        if model in self.state.denied:
            return self._json(403, {"Code": 10010103003, "Message": "no permission", "Success": False})
        if model not in self.state.models:
            return self._json(404, {"Code": 10010205001, "Message": "record not found", "Success": False})
        files, action = self.state.models[model], words[5:]
        if action == ["repo", "files"]:
            entries = [
                {"Path": name, "Name": name, "Size": len(data), "Type": "blob",
                 "Sha256": hashlib.sha256(data).hexdigest()}
                for name, data in files.items()
            ]  # fmt: skip
            return self._json(200, {"Code": 200, "Data": {"Files": entries}, "Success": True})
        if action == ["repo"]:
            return self._file(files[query["FilePath"][0]])
        return self._json(200, {"Code": 200, "Data": {"Path": words[3], "Name": words[4]}, "Success": True})

    def _file(self, data: bytes) -> None:
        start, status, headers = 0, 200, {"Accept-Ranges": "bytes"}
        asked = self.headers.get("Range")
        end = len(data) - 1
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or end), end)
            status, headers["Content-Range"] = 206, f"bytes {start}-{end}/{len(data)}"
        self._send(status, data[start : end + 1], headers)

    def _json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
