"""A running vLLM's own messages and responses beside what is made of its chat completions."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.conftest import DemoServer
from tests.gateway.translate import test_messages_chat, test_responses_chat
from tests.gateway.translate.conftest import translated
from trimtab.gateway.translate import between

pytestmark = pytest.mark.vllm
WORDS = "Say: the sky is blue."


def asked(server: DemoServer, path: str, body: dict[str, Any]) -> bytes:
    answer = httpx2.post(server.base_url + path, json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.content


def as_chat(asks: bytes, body: dict[str, Any]) -> dict[str, Any]:
    translation = between(asks, frozenset({"chat"}))
    assert translation is not None
    found = json.loads(translation.request(json.dumps(body).encode()))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("limit", [3, 20])
def test_messages(demo_server: DemoServer, limit: int) -> None:
    body: dict[str, Any] = {
        "model": demo_server.model, "max_tokens": limit, "temperature": 0, "system": "You answer briefly.",
        "messages": [{"role": "user", "content": WORDS}], "stream": True,
    }  # fmt: skip
    said = asked(demo_server, "/chat/completions", as_chat(b"/messages", body))
    ours = test_messages_chat.events(translated(b"/messages", "chat", said, body))
    theirs = test_messages_chat.events(asked(demo_server, "/messages", body))
    theirs[0]["message"]["usage"] = {"input_tokens": 0, "output_tokens": 0}
    for event in (ours[-2], theirs[-2]):  # the second request finds its prompt in the cache
        usage = event.pop("usage")
        event["tokens"] = (
            sum(usage.get(n, 0) for n in ("input_tokens", "cache_read_input_tokens")),
            usage["output_tokens"],
        )
    assert ours == theirs


@pytest.mark.parametrize("limit", [3, 20])
def test_responses(demo_server: DemoServer, limit: int) -> None:
    body: dict[str, Any] = {
        "model": demo_server.model, "max_output_tokens": limit, "temperature": 0, "instructions": "You answer briefly.",
        "input": WORDS, "stream": True,
    }  # fmt: skip
    said = asked(demo_server, "/chat/completions", as_chat(b"/responses", body))
    ours = test_responses_chat.events(translated(b"/responses", "chat", said, body))
    theirs = test_responses_chat.events(asked(demo_server, "/responses", body))
    test_responses_chat.mend(theirs)
    for event in (ours[-1], theirs[-1]):
        event["response"]["usage"].pop("input_tokens_details")
    assert list(map(test_responses_chat.comparable, ours)) == list(map(test_responses_chat.comparable, theirs))


def test_tokens(demo_server: DemoServer) -> None:
    body = {
        "model": demo_server.model,
        "messages": [{"role": "user", "content": WORDS}],
        "system": "You answer briefly.",
    }
    translation = between(b"/messages/count_tokens", frozenset({"tokenize"}))
    assert translation is not None
    there = json.loads(translation.request(json.dumps(body).encode()))
    base = demo_server.base_url.removesuffix("/v1")
    counted = httpx2.post(base + translation.path.decode(), json=there, timeout=60).content
    theirs = json.loads(asked(demo_server, "/messages/count_tokens", body))
    assert json.loads(translation.answer(counted))["input_tokens"] == theirs["input_tokens"]
