"""A server that answers with what a translation makes of a back end's recorded bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from trimtab.gateway.errors import body as error_body
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between

RECORDED = Path(__file__).parent / "recorded"  # what vLLM 0.32.0 (CPU) said; see README there
PIECE = 700  # bytes: what a read of a socket might give, not whole events


_OPENED: list[anthropic.Anthropic | openai.OpenAI] = []


def anthropic_client(url: str, key: str = "k") -> anthropic.Anthropic:
    """Closed at the test's end."""
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    _OPENED.append(client)
    return client


def openai_client(url: str, key: str = "k") -> openai.OpenAI:
    """Closed at the test's end."""
    client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
    _OPENED.append(client)
    return client


@pytest.fixture(autouse=True)
def clients() -> Iterator[None]:
    """Ends the connections of the clients of a test."""
    yield
    while _OPENED:
        _OPENED.pop().close()


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def translated(asks: bytes, speaks: str, stream: bytes, body: dict[str, Any], *, piece: int = PIECE) -> bytes:
    """What becomes of a back end's stream."""
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    translation.request(json.dumps({**body, "stream": True}).encode())
    way = translation.stream()
    return b"".join(way.feed(stream[at : at + piece]) for at in range(0, len(stream), piece)) + way.end()


class Server:
    """`url` for a client; `asked` is what the back end would have been sent."""

    def __init__(self, speaks: frozenset[str], status: int, said: bytes) -> None:
        self.speaks, self.status, self.said = speaks, status, said
        self.asked: dict[str, Any] = {}
        self.path = b""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["content-length"]))
                try:
                    status, body = server.answer(self.path.partition("?")[0].removeprefix("/v1").encode(), sent)
                except Refused as refused:
                    status, body = refused.status, error_body(self.path.encode(), refused)
                self.send_response(status)
                streamed = server.asked.get("stream") and status == 200
                self.send_header("content-type", "text/event-stream" if streamed else "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, path: bytes, sent: bytes) -> tuple[int, bytes]:
        translation = between(path, self.speaks)
        assert translation is not None
        self.asked, self.path = json.loads(translation.request(sent)), translation.path
        if self.status != 200:
            return self.status, translation.error(self.status, self.said)
        if not self.asked.get("stream"):
            return 200, translation.answer(self.said)
        way = translation.stream()
        said = self.said
        return 200, b"".join(way.feed(said[at : at + PIECE]) for at in range(0, len(said), PIECE)) + way.end()


@pytest.fixture
def server() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(said: bytes | str, *, speaks: str = "chat", status: int = 200) -> Server:
        text = recorded(said) if isinstance(said, str) else said
        made.append(Server(frozenset(speaks.split()), status, text))
        return made[-1]

    yield make
    for one in made:
        one.http.shutdown()
        one.http.server_close()
