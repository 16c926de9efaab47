"""Servers that are not what a client takes them for: any answer by path over HTTP, or bytes that are no HTTP at all."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.fakes.listening import listening

TLS = Path(__file__).parents[1] / "fixtures" / "tls"
"""A self-signed certificate of localhost and its key, made for tests."""


@dataclass(frozen=True)
class Reply:
    """One answer: `late` pieces of the body are sent at once with it, `cut` closes before the stated length."""

    status: int = 200
    body: str = "{}"
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


Answer = Callable[[str, str, Mapping[str, str], str], Reply]
"""method, path, headers (lower case), body -> the answer."""


@contextmanager
def answering(answer: Answer, server: str = "test", *, tls: bool = False) -> Iterator[str]:
    """Serve `answer` on a port of this host; its root URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def version_string(self) -> str:
            return server

        def log_message(self, *_: object) -> None:
            return

        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(self.command, self.path, headers, body)
            data = reply.body.encode()
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            self.send_header("content-length", str(len(data) + (100 if reply.cut else 0)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = reply.cut

        do_GET = do_POST = do_HEAD = do_OPTIONS = _answer

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    with listening(httpd):
        yield f"{'https' if tls else 'http'}://127.0.0.1:{httpd.server_address[1]}"


@contextmanager
def saying(words: bytes, *, hold: bool = False) -> Iterator[str]:
    """Accept connections, say `words` and close (or `hold` them open without a word more); the root URL."""
    ended = threading.Event()
    held: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)

    def accept() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.sendall(words)
            if hold:
                held.append(connection)
            else:
                connection.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        for connection in held:
            connection.close()
        listener.close()
