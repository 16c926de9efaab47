"""The servers that are compared, each on the gateway's core in front of the same two back ends, and how they start."""

from __future__ import annotations

import http.client
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from load import CLIENT_CORE, GATEWAY_CORE, HERE, compiled, on_core

VLLM_ROUTER, LITELLM = "vllm-router==0.1.17", "litellm[proxy]==1.108.7"
# litellm reads a file anew at each request without opentelemetry, and parses HTTP in Python without httptools.
LITELLM_WITH = ("opentelemetry-api", "opentelemetry-sdk", "httptools")
MASTER_KEY = "sk-bench-0123456789abcdef0123456789abcdef"


class Missing(Exception):
    """A peer that cannot be had here."""


class Started(NamedTuple):
    """A running peer. `pid` 0: none, the client speaks with a back end."""

    name: str
    port: int
    key: str
    pid: int
    start_s: float
    version: str

    def stop_others_of(self, all_of: list[Started]) -> None:
        """Let this one alone run: what the others do at rest is not its cost."""
        for other in all_of:
            if other.pid:
                os.killpg(other.pid, signal.SIGCONT if other.name == self.name else signal.SIGSTOP)


class Command(NamedTuple):
    """How a peer is started: command, further environment, key, version."""

    command: list[str]
    environ: dict[str, str]
    key: str
    version: str


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_back_ends() -> tuple[subprocess.Popen[str], tuple[int, int]]:
    """One process that listens on two ports, on the client's core."""
    ports = (free_port(), free_port())
    command = on_core(CLIENT_CORE, [str(compiled("backend")), *map(str, ports)])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process, ports


def start(name: str, command: Command, port: int, place: Path, *, within_s: float = 60.0) -> Started:
    """Start a peer and wait until it answers a chat request; `start_s` is the time to that answer."""
    begun = time.monotonic()
    with (place / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            on_core(GATEWAY_CORE, command.command), stdout=output, stderr=output, cwd=place, process_group=0,
            env={**os.environ, **command.environ},
        )  # fmt: skip
    while not _answers(port, command.key):
        if process.poll() is not None or time.monotonic() - begun > within_s:
            text = (place / "output.txt").read_text(errors="replace")[-800:]
            stop(process.pid)
            raise Missing(f"no answer after {time.monotonic() - begun:.1f} s (exit code {process.poll()}): {text}")
        time.sleep(0.005)
    return Started(name, port, command.key, process.pid, time.monotonic() - begun, command.version)


def stop(pid: int) -> None:
    """End a peer and what it started."""
    if pid:
        for number in (signal.SIGCONT, signal.SIGTERM):
            _signal(pid, number)
        end = time.monotonic() + 5
        while time.monotonic() < end and _is_alive(pid):
            time.sleep(0.02)
        _signal(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _answers(port: int, key: str) -> bool:
    body = json.dumps({"model": "bench", "messages": [{"role": "user", "content": "hello"}]})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


# Each takes its port, the back ends' ports, an empty folder, and where peers are installed.
Maker = Callable[[int, tuple[int, int], Path, Path], Command]


def gateway(port: int, back_ends: tuple[int, int], place: Path, _: Path, trimtab: str = "") -> Command:
    """Trimtab with everything on: a key with limits, two replicas under another id, usage in SQLite, metrics."""
    program = trimtab or str(Path(sys.executable).with_name("trimtab"))
    store = f"sqlite:///{place}/gateway.db"
    config = {
        "listen": f"127.0.0.1:{port}", "store": store, "local": False,
        "back_ends": {f"b{n}": {"url": f"http://127.0.0.1:{at}", "kind": "vllm"} for n, at in enumerate(back_ends)},
        "models": {"bench": {"targets": [{"back_end": f"b{n}", "model": "m"} for n in range(len(back_ends))]}},
    }  # fmt: skip
    path = place / "gateway.yaml"
    path.write_text(json.dumps(config))  # YAML too
    environ = {f"XDG_{kind.upper()}_HOME": str(place / kind) for kind in ("data", "state", "config")}
    limits = ("models=bench", "requests_per_minute=100000000", "tokens_per_minute=100000000000", "concurrency=100000",
              "tokens_per_month=1000000000000000")  # fmt: skip
    made = subprocess.run(
        [program, "keys", "create", "--label", "bench", "--config", str(path), "--json",
         *(word for limit in limits for word in ("--limit", limit))],
        capture_output=True, text=True, env={**os.environ, **environ}, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        raise Missing(f"trimtab keys create: {made.stderr}")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return Command([program, "gateway", "--config", str(path)], environ, json.loads(made.stdout)["text"], version)


def nginx(port: int, back_ends: tuple[int, int], place: Path, _: Path) -> Command:
    """One worker, key by a map, least connections of two, no access log. The master process does nothing."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise Missing("nginx: apt-get install nginx")
    temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{kind}_temp_path {place}/{kind};" for kind in temporary)
    servers = " ".join(f"server 127.0.0.1:{at};" for at in back_ends)
    text = f"""daemon off; worker_processes 1; pid {place}/pid; error_log {place}/error.log;
events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 1000000000; map_hash_bucket_size 256; {paths}
  map $http_authorization $known {{ default 0; "Bearer {MASTER_KEY}" 1; }}
  upstream back {{ least_conn; {servers} keepalive 256; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; client_body_buffer_size 64k;
    location / {{ if ($known = 0) {{ return 401; }}
      proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }} }} }}
"""
    (place / "nginx.conf").write_text(text)
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    command = [program, "-c", f"{place}/nginx.conf", "-p", str(place)]
    return Command(command, {}, MASTER_KEY, told.strip().rpartition("/")[2])


def vllm_router(port: int, back_ends: tuple[int, int], _: Path, installed: Path) -> Command:
    """Its defaults: retries, circuit breaker, Prometheus; round robin; it checks no key."""
    program = _installed(installed / "vllm-router", VLLM_ROUTER) / "vllm-router"
    command = [str(program), "--host", "127.0.0.1", "--port", str(port), "--policy", "round_robin",
               "--log-level", "error", "--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port()),
               "--worker-urls", *(f"http://127.0.0.1:{at}" for at in back_ends)]  # fmt: skip
    return Command(command, {}, MASTER_KEY, VLLM_ROUTER.rpartition("=")[2])


def litellm(port: int, back_ends: tuple[int, int], place: Path, installed: Path) -> Command:
    """One worker, a master key, no database: it stores no usage."""
    program = _installed(installed / "litellm", LITELLM, *LITELLM_WITH) / "litellm"
    bases = [f"http://127.0.0.1:{at}/v1" for at in back_ends]
    targets = [{"model": "openai/m", "api_base": base, "api_key": "none"} for base in bases]
    models = [{"model_name": "bench", "litellm_params": target} for target in targets]
    path = place / "litellm.yaml"
    path.write_text(json.dumps({"model_list": models, "general_settings": {"master_key": MASTER_KEY}}))
    command = [str(program), "--config", str(path), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_TELEMETRY": "False"}
    return Command(command, environ, MASTER_KEY, LITELLM.rpartition("=")[2])


def minimal(port: int, back_ends: tuple[int, int], _: Path, __: Path) -> Command:
    """The least that a proxy in Python can be: what the language, its parser and its loop cost by themselves."""
    command = [sys.executable, str(HERE / "minimal.py"), str(port), *map(str, back_ends)]
    return Command(command, {}, MASTER_KEY, platform.python_version())


PEERS: dict[str, Maker] = {
    "gateway": gateway, "nginx": nginx, "minimal": minimal, "vllm-router": vllm_router, "litellm": litellm,
}  # fmt: skip


def _installed(venv: Path, *packages: str) -> Path:
    """The programs of a virtual environment with these packages, made if it is not there."""
    if not (venv / "bin" / venv.name).exists():
        print(f"installing {' '.join(packages)} in {venv}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        command = [str(venv / "bin" / "pip"), "install", "-q", *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(venv)
            raise Missing(f"{packages[0]} cannot be installed: {done.stderr.strip()[-300:]}")
    return venv / "bin"
