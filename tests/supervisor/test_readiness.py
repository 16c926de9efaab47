"""What the probe makes of answers: of an engine that serves, refuses, is dead, is silent, or is no engine at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trimtab.supervisor.ports import free_port
from trimtab.supervisor.readiness import Health, Probe, Token

TOKEN = b'{"choices": [{"index": 0, "text": "Hi"}], "usage": {"completion_tokens": 1}}'
CHAT, PLAIN, MODELS = "/v1/chat/completions", "/v1/completions", "/v1/models"
Answers = dict[str, tuple[int, bytes]]


class Server(ThreadingHTTPServer):
    """Answers as `answers` says, 404 else; `asked` keeps path, headers and body. A path in `held` waits for `go_on`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: Answers = {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.held: set[str] = set()
        self.go_on = threading.Event()

    def probe(self, api_key: str = "sk-1") -> Probe:
        return Probe(f"http://127.0.0.1:{self.server_address[1]}", api_key=api_key, model="m")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body) if body else None))
        if self.path in self.server.held:
            self.server.go_on.wait(30)
        status, body = self.server.answers.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.go_on.set()
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize(
    ("status", "health"),
    [(200, Health.OK), (503, Health.BROKEN), (404, Health.SILENT), (302, Health.SILENT), (500, Health.SILENT)],
)
def test_health(server: Server, status: int, health: Health) -> None:
    server.answers["/health"] = (status, b"")
    assert server.probe().health() is health


@pytest.mark.parametrize(
    ("answers", "token"),
    [
        pytest.param({CHAT: (200, TOKEN)}, Token.GIVEN, id="chat"),
        pytest.param({CHAT: (400, b""), PLAIN: (200, TOKEN)}, Token.GIVEN, id="no-template"),
        pytest.param({PLAIN: (200, TOKEN)}, Token.GIVEN, id="no-chat"),
        pytest.param({MODELS: (200, b"{}")}, Token.GIVEN, id="embeddings"),
        pytest.param({}, Token.REFUSED, id="no-endpoint"),
        pytest.param({CHAT: (401, b""), PLAIN: (200, TOKEN)}, Token.REFUSED, id="wrong-key"),
        pytest.param({CHAT: (500, b"")}, Token.REFUSED, id="engine-error"),
        pytest.param({CHAT: (200, b"<html>")}, Token.REFUSED, id="web-page"),
        pytest.param({CHAT: (200, b"\xff\xfe")}, Token.REFUSED, id="no-text"),
        pytest.param({CHAT: (200, b"[]")}, Token.REFUSED, id="list"),
        pytest.param({CHAT: (200, TOKEN.replace(b": 1}", b": 0}"))}, Token.REFUSED, id="no-token"),
        pytest.param({CHAT: (200, b'{"choices": [], "usage": {"completion_tokens": 1}}')}, Token.REFUSED, id="empty"),
        pytest.param({CHAT: (200, b'{"choices": [{}], "usage": null}')}, Token.REFUSED, id="no-usage"),
    ],
)
def test_a_token(server: Server, answers: Answers, token: Token) -> None:
    server.answers = answers
    assert server.probe().token() is token


def test_what_is_asked(server: Server) -> None:
    server.answers = {PLAIN: (200, TOKEN)}
    server.probe("sk-2").token()
    (chat, headers, body), (plain, _, other) = server.asked
    assert (chat, plain) == (CHAT, PLAIN)
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer sk-2", "application/json")
    same = {"model": "m", "max_tokens": 1, "temperature": 0}
    assert body == {**same, "messages": [{"role": "user", "content": "Hi"}]}
    assert other == {**same, "prompt": "Hi"}


def test_without_a_key_none_is_sent(server: Server) -> None:
    server.probe("").health()
    assert "Authorization" not in server.asked[0][1]


@pytest.mark.parametrize("held", [CHAT, PLAIN])
def test_a_token_that_is_waited_for_in_vain(server: Server, held: str) -> None:
    server.held = {held}
    server.answers = {MODELS: (200, b"{}")}
    assert server.probe().token(0.1) is Token.AWAITED


def test_nobody_there() -> None:
    probe = Probe(f"http://127.0.0.1:{free_port('127.0.0.1', first=18900)}", api_key="", model="m")
    assert (probe.health(), probe.token(), probe.metrics()) == (Health.SILENT, Token.REFUSED, None)


def test_metrics(server: Server) -> None:
    assert server.probe().metrics() is None
    server.answers = {"/metrics": (200, b"vllm:num_requests_running 1.0\n")}
    assert server.probe().metrics() == b"vllm:num_requests_running 1.0\n"
