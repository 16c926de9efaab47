"""A stand-in for `vllm serve` that is as fast as its flags: run as a real process, standard library only.

One word is one token. As many requests run at once as --max-num-seqs says; a step takes longer the more run, though
less than in proportion. TUNED_ENGINE holds what goes wrong, as JSON: {"dies_at": {"max-num-seqs": "8"}},
{"dies_serving": ...} likewise, {"mute": true} answers with nothing, {"start_s": 5} takes so long to start.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

STEP_S, EACH_S = 0.008, 0.0005
OOM = (
    "(EngineCore pid=7) ERROR 11-30 03:26:40 [core.py:1084] torch.OutOfMemoryError: CUDA out of memory. Tried to "
    "allocate 296.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 237.00 MiB is free."
)


def flags_of(words: list[str]) -> dict[str, str]:
    """--name value pairs; a switch is "true"."""
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if word.startswith("--"):
            value = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else "true"
            found[word[2:]] = value
    return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    flags: ClassVar[dict[str, str]] = {}
    fault: ClassVar[dict[str, Any]] = {}
    slots: ClassVar[threading.Semaphore]
    lock = threading.Lock()
    running, answered = 0, 0

    def do_GET(self) -> None:
        context = int(self.flags["max-model-len"])
        if self.path == "/v1/models":
            one = {"id": self.flags["served-model-name"], "object": "model", "max_model_len": context}
            self._reply(200, json.dumps({"object": "list", "data": [one]}).encode())
        elif self.path == "/metrics":
            labels = '{engine="0",model_name="m"}'
            lines = [f"vllm:num_requests_running{labels} {Handler.running}", f"vllm:kv_cache_usage_perc{labels} 0.1",
                     f"vllm:num_requests_waiting{labels} 0", f"vllm:num_preemptions_total{labels} 0"]  # fmt: skip
            self._reply(200, "\n".join(lines).encode() + b"\n", "text/plain")
        else:
            self._reply(200, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body.get("prompt") or " ".join(m["content"] for m in body.get("messages", ()))
        tokens, most = len(text.split()), int(body.get("max_tokens", 1))
        if self.path == "/tokenize":
            self._reply(200, json.dumps({"count": tokens}).encode())
        elif tokens + most > int(self.flags["max-model-len"]):
            self._reply(400, b'{"error": {"message": "maximum context length exceeded", "code": 400}}')
        else:
            self._answer(body, tokens, most)

    def _answer(self, body: dict[str, Any], tokens: int, most: int) -> None:
        with self.slots:
            with self.lock:
                Handler.running += 1
            try:
                self._generate(body, tokens, most)
            finally:
                with self.lock:
                    Handler.running -= 1
                    Handler.answered += 1
        if self._matches("dies_serving") and Handler.answered > 20:
            print(OOM, flush=True)
            os._exit(1)

    def _generate(self, body: dict[str, Any], tokens: int, most: int) -> None:
        word = "" if self.fault.get("mute") else "word "
        usage = {"prompt_tokens": tokens, "completion_tokens": most, "total_tokens": tokens + most}
        if not body.get("stream"):
            for _ in range(most):
                time.sleep(STEP_S + EACH_S * Handler.running)
            choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": word * most}}
            self._reply(200, json.dumps({"choices": [choice], "usage": usage}).encode())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for at in range(most):
            time.sleep(STEP_S + EACH_S * Handler.running)
            end = "length" if at == most - 1 else None
            self._event({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": end}]})
        self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    @classmethod
    def _matches(cls, name: str) -> bool:
        wanted = cls.fault.get(name)
        return wanted is not None and all(cls.flags.get(flag) == value for flag, value in wanted.items())

    def _reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are no news."""


def main() -> None:
    words = sys.argv[1:]
    if words == ["--version"]:
        print("0.32.0")
        return
    Handler.flags = flags_of(words)
    Handler.fault = json.loads(os.environ.get("TUNED_ENGINE", "{}"))
    Handler.slots = threading.Semaphore(int(Handler.flags["max-num-seqs"]))
    print("(EngineCore pid=7) INFO 11-30 03:26:14 [model_runner.py:305] Model loading took 1.2 GiB", flush=True)
    time.sleep(float(Handler.fault.get("start_s", 0)))
    if Handler._matches("dies_at"):
        print(OOM, flush=True)
        sys.exit(1)
    Server(("127.0.0.1", int(Handler.flags["port"])), Handler).serve_forever()


if __name__ == "__main__":
    main()
