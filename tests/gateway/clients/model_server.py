"""A model server of real sockets for real clients: the first word of a request's last text names what it does.

Under /only-messages/v1 it speaks /messages alone, under /only-chat/completions/v1 chat alone, and so on.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.gateway.clients import chat_words, messages_words, responses_words

FAILURES = {"busy": 429, "bad": 400, "broken": 500, "unprocessable": 422}
LENGTH = 32768
WAIT_S = 20.0
RECORDED = Path(__file__).parents[1] / "translate" / "recorded"


class Seen(NamedTuple):
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


class ModelServer:
    """Answers in the background; `seen` are its requests, `lost` the cases whose client left before the end."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.lost: dict[str, float] = {}
        self.times: Counter[str] = Counter()
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def last(self, case: str) -> Seen:
        """The latest request of a case."""
        return next(seen for seen in reversed(self.seen) if case_of(seen.body) == case)

    def wait_lost(self, case: str) -> float:
        """The moment, monotonic, at which the connection of a case was lost."""
        end = time.monotonic() + WAIT_S
        while case not in self.lost:
            assert time.monotonic() < end, f"nobody left {case!r}"
            time.sleep(0.005)
        return self.lost[case]

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def case_of(body: Any) -> str:
    """The last text of a request in any protocol."""
    if not isinstance(body, dict):
        return ""
    given = body.get("messages") or body.get("input") or body.get("prompt") or ""
    while isinstance(given, list) and given:
        given = given[-1]
        if isinstance(given, dict):
            given = given.get("content") or given.get("output") or given.get("text") or ""
    return given if isinstance(given, str) else ""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error here; what else goes wrong is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of: ModelServer

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests look at `seen`."""

    def do_GET(self) -> None:
        card = {"id": "m", "object": "model", "created": 1700000000, "owned_by": "vllm", "root": "m", "parent": None,
                "max_model_len": LENGTH, "permission": []}  # fmt: skip
        self._whole(200, {"object": "list", "data": [card]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        body = json.loads(raw) if is_json else raw
        only, path = self._asked()
        server = self.server_of
        server.seen.append(Seen(path, {name.lower(): value for name, value in self.headers.items()}, body))
        if only not in ("", path):
            self._whole(404, {"error": {"message": f"this back end speaks {only} alone", "type": "NotFoundError"}})
            return
        case = case_of(body)
        server.times[case] += 1
        word = case.split(" ")[0]
        if word == "recorded":
            self._say_again(path, case.split(" ")[1], bool(body.get("stream")))
        elif word == "silent":
            self._watch(case)
        elif word in FAILURES or (word == "twice" and server.times[case] == 1):
            self._fail(path, FAILURES.get(word, 429))
        elif isinstance(body, dict) and body.get("stream"):
            self._stream(case, word, _events(path, word, body))
        else:
            self._whole(200, _answer(path, word, body))

    def _asked(self) -> tuple[str, str]:
        """The one path that is spoken under /only-PATH, or "" for all; and the path that was asked for."""
        first, _, rest = self.path.partition("/v1")
        return first.replace("/only-", "/", 1), rest

    def _fail(self, path: str, status: int) -> None:
        words = messages_words if path.startswith("/messages") else chat_words
        extra = {"Retry-After": "1", "retry-after-ms": "20"} if status == 429 else {}
        self._whole(status, words.error(status), extra)

    def _say_again(self, path: str, name: str, streamed: bool) -> None:
        """What vLLM answered, byte for byte; a stream in pieces that end anywhere."""
        data = recorded(path, name, streamed=streamed)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8" if streamed else "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(data), 97):
            piece = data[at : at + 97]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _whole(self, status: int, value: Any, extra: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), "x-of-the-model": "yes"}
        for name, given in {**headers, **(extra or {})}.items():
            self.send_header(name, given)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, case: str, word: str, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if word == "stuck" and number == 2:
                self._watch(case)
                return
            if word == "cut" and number == 2:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _watch(self, case: str) -> None:
        """Say nothing until the other side leaves."""
        select.select([self.connection], [], [], WAIT_S)
        self.server_of.lost[case] = time.monotonic()
        self.close_connection = True


def recorded(path: str, name: str, *, streamed: bool) -> bytes:
    """An answer of vLLM 0.32 that tests/gateway/translate keeps."""
    kind = {"/chat/completions": "chat", "/messages": "messages", "/responses": "responses"}[path]
    return (RECORDED / f"{name}-{kind}.{'sse' if streamed else 'json'}").read_bytes()


def _answer(path: str, word: str, body: Any) -> Any:
    if path == "/chat/completions":
        return chat_words.answer(word)
    if path == "/completions":
        return chat_words.completion()
    if path == "/embeddings":
        return chat_words.embeddings(body)
    if path == "/messages":
        return messages_words.answer(word)
    if path == "/messages/count_tokens":
        return {"input_tokens": 11}
    if path == "/responses":
        return responses_words.answer(word)
    return {"text": "what was said"}  # /audio/transcriptions


def _events(path: str, word: str, body: Any) -> Iterator[bytes]:
    if path == "/messages":
        return messages_words.events(word)
    if path == "/responses":
        return responses_words.events(word)
    if path == "/completions":
        return chat_words.completion_events()
    return chat_words.events(word, bool((body.get("stream_options") or {}).get("include_usage")))
