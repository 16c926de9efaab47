"""One gateway in front of one model server for all tests of clients; three models, each another way to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.gateway.clients.model_server import ModelServer
from tests.gateway.process import KEY, gateway


class Way(NamedTuple):
    """Where clients ask, and what stands behind."""

    url: str
    key: str
    server: ModelServer


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """What all models of `way` lead to."""
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def way(model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Model `m` is spoken to in every protocol; `chat-only` in chat alone, `messages-only` in messages alone."""
    url = f"http://127.0.0.1:{model_server.port}"
    config = {
        "local": False,
        "back_ends": {
            "all": {"url": url, "kind": "vllm"},
            "chat": {"url": f"{url}/only-chat/completions", "kind": "openai", "protocols": ["chat"]},
            "messages": {"url": f"{url}/only-messages", "kind": "anthropic"},
        },
        "models": {
            "m": {"targets": [{"back_end": "all"}]},
            "demo": {"targets": [{"back_end": "all"}]},
            "renamed": {"targets": [{"back_end": "all", "model": "demo"}]},
            "chat-only": {"targets": [{"back_end": "chat", "model": "m"}]},
            "messages-only": {"targets": [{"back_end": "messages", "model": "m"}]},
        },
    }
    with gateway(tmp_path_factory.mktemp("clients"), json.dumps(config)) as running:
        yield Way(f"http://127.0.0.1:{running.port}", KEY, model_server)
