"""A stand-in for `vllm serve`, run as a real process: loads, compiles, serves, dies and hangs as told.

Standard library only, so that any Python starts it at once. Its output has vLLM's wording.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

PHASES = {
    "load": [
        "(EngineCore pid={pid}) INFO 11-30 03:26:13 [v1/worker/gpu/model_runner.py:284] Loading model from scratch...",
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00,  3.2it/s]\r"
        "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:00<00:00,  3.2it/s]",
        "(EngineCore pid={pid}) INFO 11-30 03:26:14 [v1/worker/gpu/model_runner.py:305] "
        "Model loading took 14.29 GiB and 1.713532 seconds",
    ],
    "compile": [
        "(EngineCore pid={pid}) INFO 11-30 03:26:32 [compilation/monitor.py:53] torch.compile took 16.92 s in total",
        "(EngineCore pid={pid}) INFO 11-30 03:26:34 [v1/core/kv_cache_utils.py:2177] "
        "GPU KV cache size: 2,096,192 tokens",
    ],
    "serve": ["(APIServer pid={pid}) INFO:     Application startup complete."],
}


TOO_LONG = (
    "(EngineCore pid={pid}) ERROR 11-30 03:43:16 [core.py:9] ValueError: To serve at least one request with the "
    "model's max seq len ({context}), 16.0 GiB KV cache is needed, which is larger than the available KV cache memory "
    "(3.18 GiB). Based on the available memory, the estimated maximum model length is {tokens}. Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
METRICS = """# HELP vllm:num_requests_running Number of requests in model execution batches.
vllm:num_requests_running{{engine="0",model_name="fake"}} {running}.0
vllm:num_requests_waiting{{engine="0",model_name="fake"}} 0.0
vllm:generation_tokens_total{{engine="0",model_name="fake"}} {tokens}.0
"""


class Core:
    """The engine proper in a process of its own, which gives tokens, one at a time; it ends when we do."""

    def __init__(self, token_s: float, worker: bool) -> None:
        argv = [sys.executable, "-S", __file__, "--port", "0", "--be-core", "--token-s", str(token_s)]
        self.process = subprocess.Popen(
            [*argv, *(["--worker"] if worker else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.lock = threading.Lock()
        self.dead = False

    def token(self) -> bool:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.lock:
            try:
                self.process.stdin.write(b"token\n")
                self.process.stdin.flush()
                self.dead = not self.process.stdout.readline()
            except OSError:
                self.dead = True
        return not self.dead


def be_core(told: argparse.Namespace) -> None:
    if told.worker:
        worker = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
        threading.Thread(target=lambda: os._exit(worker.wait() and 1), daemon=True).start()
    while sys.stdin.readline():
        time.sleep(told.token_s)
        print("token", flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: argparse.Namespace
    core: Core | None = None
    lock = threading.Lock()
    counted: ClassVar = {"running": 0, "tokens": 0}
    ending = threading.Event()  # asked to end, and lets what runs go on: as vLLM's --shutdown-timeout

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(503 if self.core is not None and self.core.dead else 200, b"")
        elif self.path == "/metrics" and not self.options.no_metrics:
            self._reply(200, METRICS.format(running=self.counted["running"], tokens=self.counted["tokens"]).encode())
        elif self._admitted():
            self._reply(200, json.dumps({"data": [{"id": self.options.model, "object": "model"}]}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._admitted():
            return
        if self.ending.is_set():
            self._reply(500, b'{"error": {"message": "cannot schedule new futures after shutdown"}}')
        elif self.path == "/v1/chat/completions" and self.options.no_chat:
            self._reply(400, b'{"error": {"message": "no chat template"}}')
        elif body["model"] != self.options.model:
            self._reply(404, b'{"error": {"message": "no such model"}}')
        elif self._generated(int(body.get("max_tokens", 1))):
            choice = {"index": 0, "finish_reason": "length", "message": {"content": "Hi"}, "text": "Hi"}
            self._reply(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": 1}}).encode())
        else:
            self._reply(500, b'{"error": {"message": "EngineCore encountered an issue"}}')

    def _generated(self, tokens: int) -> bool:
        with self.lock:
            self.counted["running"] += 1
        try:
            for _ in range(tokens):
                if self.core is not None and not self.core.token():
                    return False
                with self.lock:
                    self.counted["tokens"] += 1
        finally:
            with self.lock:
                self.counted["running"] -= 1
        return True

    def _admitted(self) -> bool:
        key = self.options.api_key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._reply(401, b'{"error": "Unauthorized"}')
            return False
        return True

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="fake")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--hold", choices=[*PHASES, ""], default="", help="stay in this phase for ever")
    parser.add_argument("--die", choices=[*PHASES, ""], default="", help="exit in this phase")
    parser.add_argument("--exit-code", type=int, default=1)
    parser.add_argument("--print", type=Path, help="print this file before dying")
    parser.add_argument("--die-when", type=Path, help="serve until this file is there, then die")
    parser.add_argument("--core", action="store_true", help="give tokens from a process of its own")
    parser.add_argument("--worker", action="store_true", help="the core has a child of its own")
    parser.add_argument("--token-s", type=float, default=0.0)
    parser.add_argument("--be-core", action="store_true")
    parser.add_argument("--no-metrics", action="store_true")
    parser.add_argument("--stays-when-core-dies", action="store_true")
    parser.add_argument("--context", type=int, default=0, help="--max-model-len as given to vLLM")
    parser.add_argument("--kv-tokens", type=int, default=0, help="refuse a context that is longer")
    parser.add_argument("--spam", type=int, default=0, help="bytes of lines to print before serving")
    parser.add_argument("--long-line", type=int, default=0, help="bytes of one line to print before serving")
    parser.add_argument("--nul", action="store_true", help="print NUL bytes before serving")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--shutdown-timeout", type=float, default=0, help="after SIGTERM, as vLLM's own")
    parser.add_argument("--slow-end", action="store_true", help="stay when all requests are done")
    parser.add_argument("--no-chat", action="store_true")
    parser.add_argument(
        "--grandchild", choices=["same", "session", ""], default="", help="leave one that holds the output"
    )
    return parser.parse_args()


def grandchild(own_session: bool) -> None:
    """A process that ignores SIGTERM and holds our output, in our session or in one of its own."""
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('grandchild', flush=True); signal.pause()"
    )
    subprocess.Popen([sys.executable, "-c", code], start_new_session=own_session)


def phase(name: str, told: argparse.Namespace) -> None:
    for line in PHASES[name]:
        print(line.format(pid=os.getpid()), flush=True)
    if told.die == name:
        die(told)
    if told.hold == name:
        threading.Event().wait()


def noise(told: argparse.Namespace) -> None:
    if told.nul:
        print("before\0\0\0after", flush=True)
    if told.long_line:
        print("x" * told.long_line, flush=True)
    for number in range(told.spam // 100):
        print(f"INFO 11-30 03:26:35 [loggers.py:1] line {number:8} " + "." * 53)
    sys.stdout.flush()


def die(told: argparse.Namespace) -> None:
    if told.print:
        print(told.print.read_text(), flush=True)
    sys.stdout.flush()
    os._exit(told.exit_code)


def main() -> None:
    told = options()
    if told.be_core:
        be_core(told)
        return
    if told.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if told.grandchild:
        grandchild(told.grandchild == "session")
    phase("load", told)
    phase("compile", told)
    noise(told)
    if told.kv_tokens and told.context > told.kv_tokens:
        print(TOO_LONG.format(pid=os.getpid(), context=told.context, tokens=told.kv_tokens), flush=True)
        sys.exit(1)
    if told.shutdown_timeout:
        signal.signal(signal.SIGTERM, lambda *_: Handler.ending.set())
    Handler.options = told
    Handler.core = Core(told.token_s, told.worker) if told.core else None
    server = ThreadingHTTPServer(("127.0.0.1", told.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    phase("serve", told)
    while told.die_when is None or not told.die_when.exists():
        if Handler.core is not None and Handler.core.process.poll() is not None:
            Handler.core.dead = True
            if not told.stays_when_core_dies:
                print("ERROR 11-30 03:26:40 [v1/engine/core_client.py:668] Engine core proc died", flush=True)
                break
        if Handler.ending.is_set() and not Handler.counted["running"] and not told.slow_end:
            time.sleep(0.1)  # the last answer is on its way
            os._exit(0)
        time.sleep(0.02)
    die(told)


if __name__ == "__main__":
    main()
