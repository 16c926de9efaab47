"""The real engine asked at its own address and through the gateway: the same answers, and streams event by event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.conftest import DemoServer
from tests.gateway.process import KEY, gateway

pytestmark = pytest.mark.vllm
TALK = [{"role": "user", "content": "Say something."}]
FIXED = {"model": "demo", "temperature": 0, "seed": 1}
ASKED: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": TALK, "max_tokens": 12},
    "/completions": {"prompt": "Once upon a time", "max_tokens": 12},
    "/responses": {"input": "Say something.", "max_output_tokens": 12},
    "/messages": {"messages": TALK, "max_tokens": 12},
}
# What differs between two answers to the same request at the same address.
_OWN = re.compile(
    r'"(?:id|item_id|response_id|created|created_at|completed_at|request_id)": ?(?:"[^"]*"|[\d.]+)'
    r"|\b(?:resp|msg|chatcmpl|cmpl)[-_]\w+"
)
_FINGERPRINT = re.compile(r',"system_fingerprint":"[^"]*"')


@pytest.fixture(scope="module")
def through(demo_server: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a gateway in front of the engine."""
    config = {
        "local": False,
        "back_ends": {"engine": {"url": demo_server.base_url, "kind": "vllm"}},
        "models": {"demo": {"targets": [{"back_end": "engine"}]}},
    }
    with gateway(tmp_path_factory.mktemp("gateway"), json.dumps(config)) as running:
        yield f"http://127.0.0.1:{running.port}/v1"


def ask(base: str, path: str, **more: Any) -> httpx2.Response:
    body = {**FIXED, **ASKED[path], **more}
    return httpx2.post(base + path, json=body, headers={"Authorization": f"Bearer {KEY}"}, timeout=120)


def events(answer: httpx2.Response) -> list[str]:
    """The events of a stream, without what is each answer's own."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [_OWN.sub("", event) for event in answer.text.split("\n\n")]


@pytest.mark.parametrize("path", ASKED)
def test_a_stream_is_the_engines_event_by_event(demo_server: DemoServer, through: str, path: str) -> None:
    # The gateway asks for usage by itself: vLLM then tells its fingerprint in that event, which is kept back, else in
    # the one before (vllm/entrypoints/openai/chat_completion/serving.py, chat_completion_stream_generator, 0.32).
    straight = [_FINGERPRINT.sub("", event) for event in events(ask(demo_server.base_url, path, stream=True))]
    assert len(straight) > 5
    assert events(ask(through, path, stream=True)) == straight


@pytest.mark.parametrize("path", ["/chat/completions", "/completions"])
def test_usage_is_in_a_stream_where_it_was_asked_for(demo_server: DemoServer, through: str, path: str) -> None:
    told = {"stream": True, "stream_options": {"include_usage": True}}
    straight = events(ask(demo_server.base_url, path, **told))
    assert events(ask(through, path, **told)) == straight
    assert '"usage"' in straight[-3]


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_is_the_engines(demo_server: DemoServer, through: str, path: str) -> None:
    straight, passed = ask(demo_server.base_url, path), ask(through, path)
    assert straight.status_code == passed.status_code == 200
    assert _OWN.sub("", passed.text) == _OWN.sub("", straight.text)


@pytest.mark.parametrize("path", ASKED)
def test_an_error_is_the_engines(demo_server: DemoServer, through: str, path: str) -> None:
    straight, passed = (ask(base, path, temperature=-5) for base in (demo_server.base_url, through))
    assert straight.status_code == passed.status_code >= 400
    assert _OWN.sub("", passed.text) == _OWN.sub("", straight.text)


def test_the_engines_context_is_told(demo_server: DemoServer, through: str) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    body = httpx2.post(
        through.removesuffix("/v1") + "/tokenize",
        json={"model": "demo", "prompt": "Once upon"},
        headers=headers,
        timeout=60,
    )
    assert body.json()["max_model_len"] == demo_server.max_model_len
