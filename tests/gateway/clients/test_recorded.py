"""Answers and streams that vLLM gave, through the gateway: every byte arrives, however the stream is cut on its way."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.gateway.clients.conftest import Way
from tests.gateway.clients.model_server import recorded

PATHS = ["/chat/completions", "/messages", "/responses"]
NAMES = ["text", "stop", "length", "think"]


def ask(way: Way, path: str, name: str, model: str = "demo", **more: Any) -> bytes:
    given = "input" if path == "/responses" else "messages"
    body = {"model": model, given: [{"role": "user", "content": f"recorded {name}"}], "max_tokens": 8, **more}
    headers = {"Authorization": f"Bearer {way.key}"}
    answer = httpx2.post(f"{way.url}/v1{path}", json=body, headers=headers, timeout=20)
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_arrives_byte_for_byte(way: Way, path: str, name: str) -> None:
    assert ask(way, path, name) == recorded(path, name, streamed=False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_arrives_byte_for_byte(way: Way, path: str, name: str) -> None:
    more = {"stream_options": {"include_usage": True}} if path == "/chat/completions" else {}
    assert ask(way, path, name, stream=True, **more) == recorded(path, name, streamed=True)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_event_of_usage_is_kept_back_where_nobody_asked_for_it(way: Way, name: str) -> None:
    whole = recorded("/chat/completions", name, streamed=True).split(b"\n\n")
    kept = [event for event in whole if b'"choices":[]' not in event]
    assert len(kept) == len(whole) - 1
    assert ask(way, "/chat/completions", name, stream=True).split(b"\n\n") == kept


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("streamed", [False, True])
def test_only_the_models_name_is_another_one(way: Way, path: str, streamed: bool) -> None:
    more: dict[str, Any] = {"stream": True} if streamed else {}
    if streamed and path == "/chat/completions":
        more["stream_options"] = {"include_usage": True}
    found = ask(way, path, "text", "renamed", **more)
    there = recorded(path, "text", streamed=streamed)
    assert found.replace(b'"model":"renamed"', b'"model":"demo"') == there
    assert b'"demo"' not in found
    assert json.dumps("renamed").encode() in found
