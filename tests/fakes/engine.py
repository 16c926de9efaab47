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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options: argparse.Namespace

    def do_GET(self) -> None:
        if self.path == "/health":
            self._reply(200, b"")
        elif self._admitted():
            self._reply(200, json.dumps({"data": [{"id": self.options.model, "object": "model"}]}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._admitted():
            return
        if self.path == "/v1/chat/completions" and self.options.no_chat:
            self._reply(400, b'{"error": {"message": "no chat template"}}')
        elif body["model"] != self.options.model:
            self._reply(404, b'{"error": {"message": "no such model"}}')
        else:
            choice = {"index": 0, "finish_reason": "length", "message": {"content": "Hi"}, "text": "Hi"}
            self._reply(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": 1}}).encode())

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
    parser.add_argument("--ignore-term", action="store_true")
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


def die(told: argparse.Namespace) -> None:
    if told.print:
        print(told.print.read_text(), flush=True)
    sys.stdout.flush()
    os._exit(told.exit_code)


def main() -> None:
    told = options()
    if told.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if told.grandchild:
        grandchild(told.grandchild == "session")
    phase("load", told)
    phase("compile", told)
    Handler.options = told
    server = ThreadingHTTPServer(("127.0.0.1", told.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    phase("serve", told)
    while told.die_when is None or not told.die_when.exists():
        time.sleep(0.02)
    die(told)


if __name__ == "__main__":
    main()
