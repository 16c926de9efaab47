"""Spans reach a collector under the client's own trace."""

import os
import signal
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.listening import listening
from tests.gateway.fake_back_end import back_end
from tests.gateway.process import gateway, until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CHAT = {"model": "m", "messages": []}


def test_a_request_becomes_a_span_of_the_client_s_trace(tmp_path: Path) -> None:
    seen: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    config = "local: false\nback_ends:\n  b: {{url: {}}}\nmodels:\n  m: {{targets: [{{back_end: b}}]}}\notlp: {}\n"
    with listening(server), back_end() as behind:
        text = config.format(behind.url, f"http://127.0.0.1:{server.server_address[1]}")
        with gateway(tmp_path, text) as running:
            running.ask("POST", "/v1/chat/completions", CHAT, {"traceparent": f"00-{TRACE}-{SPAN}-01"})
            until(lambda: seen != [], "a span")
    path, body = seen[0]
    (span,) = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    told = {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
    assert (path, span.trace_id.hex(), span.parent_span_id.hex()) == ("/v1/traces", TRACE, SPAN)
    assert (told["gen_ai.request.model"], told["gen_ai.usage.input_tokens"], told["trimtab.back_end"]) == ("m", 7, "b")


def test_a_collector_that_hangs_keeps_no_request_waiting(tmp_path: Path) -> None:
    config = "local: false\nback_ends:\n  b: {{url: {}}}\nmodels:\n  m: {{targets: [{{back_end: b}}]}}\n"
    with socket.create_server(("127.0.0.1", 0)) as hangs, back_end() as behind:
        plain = config.format(behind.url)
        traced = f"{plain}otlp: http://127.0.0.1:{hangs.getsockname()[1]}\n"
        with gateway(tmp_path, traced) as running:

            def ask() -> float:
                begun = time.monotonic()
                assert running.ask("POST", "/v1/chat/completions", CHAT)[0] == 200
                return time.monotonic() - begun

            ask()
            hangs.settimeout(20)
            with hangs.accept()[0]:  # a span is under way
                (tmp_path / "gateway.yaml").write_text(plain)
                os.kill(running.child.pid, signal.SIGHUP)
                running.said("gateway: reloaded")
                assert ask() < 3
                (tmp_path / "gateway.yaml").write_text(traced)
                os.kill(running.child.pid, signal.SIGHUP)
                running.said("(?s)(gateway: reloaded.*){2}")
                ask()
                running.child.send_signal(signal.SIGTERM)
                assert running.child.wait(15) == 0
