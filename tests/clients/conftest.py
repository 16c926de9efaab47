"""The small model behind a gateway, and the client programs where `scripts/clients` put them."""

from __future__ import annotations

import json
import os
import socketserver
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.small_model import make_small_model
from tests.conftest import serving
from tests.gateway.process import ADMIN, Gateway, gateway
from trimtab.supervisor.environments import Engine

MODEL = "small"


class Outside(socketserver.ThreadingTCPServer):
    """A proxy to nowhere: it keeps the first line of whoever would leave this host, and closes."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refuse)

    @property
    def url(self) -> str:
        """What goes into HTTPS_PROXY."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Refuse(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Outside)
        self.server.asked.append(self.rfile.readline(4096).decode("latin-1").strip())


@pytest.fixture(scope="session")
def installed() -> Path:
    """Where the programs are. Without them: a failure where they are asked for (CI), else a reason to skip."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab" / "clients"
    found = Path(os.environ.get("TRIMTAB_CLIENTS") or cache)
    pins = Path(__file__).parent / "programs"
    marks = {"node": "package-lock.json", "aider": "aider.lock", "langchain": "langchain.lock"}
    for part, pin in marks.items():
        mark = found / part / "installed"
        if not mark.is_file() or mark.read_bytes() != (pins / pin).read_bytes():
            why = f"{part} is not in {found} as pinned in {pin}: run scripts/clients"
            if os.environ.get("TRIMTAB_CLIENTS_NEEDED"):
                pytest.fail(why)
            pytest.skip(why)
    return found


@pytest.fixture(scope="session")
def front(
    installed: Path, cpu_engine: Engine, demo_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """A gateway that knows the small model alone."""
    home = tmp_path_factory.mktemp("clients")
    model = make_small_model(home / "model", cpu_engine, demo_model)
    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    with serving(cpu_engine, model, MODEL, home / "vllm.log", *tools) as base_url:
        config = {
            "local": False,
            "access_log": str(home / "access.log"),
            "back_ends": {"engine": {"url": base_url, "kind": "vllm"}},
            "models": {MODEL: {"targets": [{"back_end": "engine"}]}},
        }
        with gateway(home / "gateway", json.dumps(config)) as running:
            yield running


def admin(front: Gateway, method: str, path: str, body: object = None) -> dict[str, object]:
    """What the admin API answers."""
    status, _, answer = front.ask(method, path, body, {"Authorization": f"Bearer {ADMIN}"})
    assert status in (200, 201), answer
    found: dict[str, object] = json.loads(answer)
    return found
