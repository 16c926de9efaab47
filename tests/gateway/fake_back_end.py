"""A back end in a thread: answers chat at once, streams when asked to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.listening import listening

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


class BackEnd(ThreadingHTTPServer):
    """`seen`: head and body of each request. A stream waits before its last event until `go` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.go = threading.Event()
        self.lists = "listed"  # the model in its list

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BackEnd

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        asked = json.loads(body)
        if asked.get("stream"):
            self._stream()
        else:
            self._whole({"id": "1", "choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": USAGE})

    def do_GET(self) -> None:
        self._whole({"object": "list", "data": [{"id": self.server.lists, "object": "model", "max_model_len": 4096}]})

    def _whole(self, answer: Any) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._chunk(b'data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
        self.server.go.wait(20)
        self._chunk(b'data: {"choices":[],"usage":' + json.dumps(USAGE).encode() + b"}\n\ndata: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def back_end() -> Iterator[BackEnd]:
    """One that serves for a block."""
    server = BackEnd()
    with listening(server):
        try:
            yield server
        finally:
            server.go.set()
