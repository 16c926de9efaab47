"""Snippets run as a user would run them, against a model server that notes what arrives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.gateway.clients.model_server import ModelServer, Seen
from trimtab.connect.values import Connection

NODE = Path(sys.executable).with_name("node")
MODULES = Path(__file__).parents[2] / "gateway" / "clients" / "node" / "node_modules"
KEY = "tt-secret"
MODEL = "demo"


@contextmanager
def serving() -> Iterator[ModelServer]:
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()


def told(server: ModelServer, *, needs_key: bool = True, write_key: bool = False) -> Connection:
    """The key in TRIMTAB_API_KEY; with `write_key` in the file instead."""
    root = f"http://127.0.0.1:{server.port}"
    return Connection(root=root, model=MODEL, key=KEY, needs_key=needs_key, write_key=write_key, context_tokens=8192)


def python(program: str, cwd: Path, *, key: bool = True) -> str:
    """What the program prints. It ends at once after that: how an interpreter is taken down is no part of a snippet."""
    program += "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
    return _run([sys.executable, "-W", "error", "-c", program], cwd, key)


def node(program: str, cwd: Path, *, key: bool = True) -> str:
    (cwd / "node_modules").symlink_to(MODULES)
    (cwd / "ask.mjs").write_text(program)
    return _run([str(NODE), "ask.mjs"], cwd, key)


def _run(command: list[str], cwd: Path, key: bool) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environ = {**kept, **({"TRIMTAB_API_KEY": KEY} if key else {})}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def only(server: ModelServer) -> Seen:
    """The one request that was made; its path is what follows the first /v1."""
    [seen] = server.seen
    return seen


def bearer(seen: Seen) -> str:
    """The key as it arrived."""
    found = {name.lower(): value for name, value in seen.headers.items()}
    return found["authorization"].removeprefix("Bearer ")
