"""A case: the command, what is prepared, what happens while it runs, what is expected; and how cases are written."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from run import Server

CLI = "vllm.entrypoints.cli.main"
API = "vllm.entrypoints.openai.api_server"
QUICK = ("--dtype", "float16", "--enforce-eager", "--max-model-len", "512", "--host", "127.0.0.1", "--port", "PORT")


@dataclass(frozen=True)
class Case:
    """`cause` is of the closed list; `happened` says in a sentence what was done."""

    kind: str
    cause: str
    happened: str
    command: tuple[str, ...] = ()
    module: str = CLI
    env: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda model: None
    before: Callable[[], None] | None = None
    starting: Callable[[Server], None] | None = None
    during: Callable[[Server], list[str]] | None = None
    shell: str = ""
    nobody: bool = False  # root without any of its privileges
    healthy: bool = False
    answered: str = ""  # the cause that the server's answer tells, where its log tells none
    wait_s: float = 170
    settle_s: float = 20


def serve(kind: str, cause: str, happened: str, *more: str, model: str = "MODEL", **rest: object) -> Case:
    """`vllm serve` of the demo model, small and quick."""
    return Case(kind, cause, happened, ("serve", model, *QUICK, *more), **rest)  # type: ignore[arg-type]


def limit(what: int, value: int) -> Callable[[], None]:
    """A resource limit for the engine."""
    return lambda: resource.setrlimit(what, (value, value))


def in_cgroup(mib: int) -> Callable[[], None]:
    """A memory limit by a control group (version 1)."""

    def enter() -> None:
        group = Path(f"/sys/fs/cgroup/memory/trimtab-{mib}")
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(mib << 20))
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return enter


def in_pids_cgroup(most: int) -> Callable[[], None]:
    """A limit of processes and threads by a control group (version 1)."""

    def enter() -> None:
        group = Path(f"/sys/fs/cgroup/pids/trimtab-{most}")
        group.mkdir(exist_ok=True)
        (group / "pids.max").write_text(str(most))
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return enter


def chat(server: Server, content: object = "Say hello.", **more: object) -> str:
    """One chat request."""
    body = {"model": "demo", "messages": [{"role": "user", "content": content}], "max_tokens": 8, **more}
    return server.ask("/v1/chat/completions", body)


def kill(name: str, number: int) -> Callable[[Server], list[str]]:
    """A signal to one process, after a good request; then another request."""

    def act(server: Server) -> list[str]:
        first = chat(server)
        server.signal(name, number)
        return [first, server.ask("/v1/chat/completions", hello(), timeout=100), server.ask("/health", timeout=5)]

    return act


def kill_once_told(told: str, name: str, number: int) -> Callable[[Server], None]:
    """A signal to one process as soon as the log of the start holds `told`."""

    def act(server: Server) -> None:
        if server.told(told):
            server.signal(name, number)

    return act


def hello() -> dict[str, object]:
    return {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}


def asks(*requests: Callable[[Server], str]) -> Callable[[Server], list[str]]:
    """Requests one after another, then SIGTERM."""

    def act(server: Server) -> list[str]:
        answers = [request(server) for request in requests]
        if server.process:
            os.kill(server.process.pid, signal.SIGTERM)
        return answers

    return act


def hold_port(model: Path) -> None:
    """Listen on a port for as long as this program runs; an engine inherits nothing of it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 18399))
    listener.listen()
    HELD.append(listener)


HELD: list[socket.socket] = []
SERVED = ("--served-model-name", "demo")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

DUMMY = ("--load-format", "dummy", *SERVED)


def well(kind: str, happened: str, *more: str, **rest: object) -> Case:
    """A start that works, with a few requests and a stop by SIGTERM."""
    return serve(f"well-{kind}", "", happened, *more, healthy=True, **{"during": asks(chat, complete, chat), **rest})


def complete(server: Server) -> str:
    """One text completion."""
    return server.ask("/v1/completions", {"model": "demo", "prompt": "Once", "max_tokens": 4})


def embed(server: Server) -> str:
    """One vector."""
    return server.ask("/v1/embeddings", {"model": "demo", "input": "a word"})


def crowd(server: Server) -> str:
    """Three hundred requests, sixteen at a time: short and long, left by their clients, and some that are refused."""

    def one(number: int) -> str:
        text = "Tell of the sea. " * (1 + number % 20)
        body = {"model": "demo", "messages": [{"role": "user", "content": text}], "max_tokens": 2 + number % 8}
        if number % 50 == 7:
            body["max_tokens"] = 4096
        return server.ask("/v1/chat/completions", body, timeout=0.3 if number % 25 == 3 else 120)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(300)))
    return f"{sum(a.startswith('200') for a in answers)} of 300 answered, {sum(a[:1] == '4' for a in answers)} refused"


def load(server: Server) -> str:
    """Thirty-two requests at once, of which every fourth is left by its client."""
    with ThreadPoolExecutor(16) as pool:
        body = hello() | {"max_tokens": 24}
        waits = [60.0 if i % 4 else 0.3 for i in range(32)]
        answers = list(pool.map(lambda wait: server.ask("/v1/chat/completions", body, timeout=wait), waits))
    return f"{sum(a.startswith('200') for a in answers)} of 32 answered"
