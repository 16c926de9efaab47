"""A server that tells its models, with and without a key, and has the routes it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.fakes.listening import listening

KEY = "sk-of-the-test"
MODEL = "qwen-7b"
CONTEXT = 65_536


@contextmanager
def serving(key: str = KEY, routes: tuple[str, ...] = ("chat/completions", "responses", "messages")) -> Iterator[str]:
    """The root of a running server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body: dict[str, object] = {}
            if self.path == "/v1/models":
                allowed = not key or self.headers.get("Authorization") == f"Bearer {key}"
                status = 200 if allowed else 401
                body = {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": CONTEXT}]}
            else:
                status = 405 if self.path.removeprefix("/v1/") in routes else 404
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as root:
        yield root
