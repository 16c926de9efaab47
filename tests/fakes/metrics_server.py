"""A real HTTP server whose /metrics says what a test wants, until it is told to fall silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MetricsServer:
    """`body` is what /metrics answers; `asked` counts; `hold` delays answers; `status` other than 200 refuses."""

    def __init__(self, body: bytes = b"") -> None:
        self.body, self.status, self.asked, self.headers = body, 200, 0, dict[str, str]()
        self.keep_alive = True
        self.hold = threading.Event()
        self.hold.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        told = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                told.asked += 1
                told.headers = dict(self.headers)
                told.hold.wait(30)
                self.send_response(told.status if self.path == "/metrics" else 404)
                self.send_header("Content-Length", str(len(told.body)))
                if not told.keep_alive:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                self.end_headers()
                self.wfile.write(told.body)

            def log_message(self, format: str, *args: object) -> None:
                return

        return Handler

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.keep_alive = False  # what is still connected gets one more answer
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(body: bytes | str) -> Iterator[MetricsServer]:
    """A server for a block."""
    server = MetricsServer(body.encode() if isinstance(body, str) else body)
    server.start()
    try:
        yield server
    finally:
        server.stop()
