"""anthropic-sdk-python's own behaviours through the gateway, bytes passed on or translated to chat completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, cast

import anthropic
import httpx2
import pytest
from anthropic import Anthropic

from tests.gateway.clients import chat_words
from tests.gateway.clients.conftest import Way

TEXT = "".join(chat_words.TEXT)
MODELS = ["m", "chat-only", "messages-only"]
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
def client(way: Way) -> Iterator[Anthropic]:
    with Anthropic(base_url=way.url, api_key=way.key, max_retries=0, timeout=20) as made:
        yield made


def ask(client: Anthropic, text: str, model: str = "m", **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return client.messages.create(model=model, max_tokens=64, messages=messages, **more)


@pytest.mark.parametrize("model", MODELS)
def test_message(client: Anthropic, model: str) -> None:
    found = ask(client, "hello", model)
    assert (found.content[0].text, found.stop_reason, found.role) == (TEXT, "end_turn", "assistant")
    assert found.usage.output_tokens == 5
    assert found.usage.cache_read_input_tokens == 3


@pytest.mark.parametrize("model", MODELS)
def test_stream(client: Anthropic, model: str) -> None:
    with client.messages.stream(model=model, max_tokens=64, messages=[{"role": "user", "content": "hello"}]) as stream:
        assert "".join(stream.text_stream) == TEXT
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 5)


@pytest.mark.parametrize("model", MODELS)
def test_the_events_of_a_stream_come_in_their_order(client: Anthropic, model: str) -> None:
    kinds = [event.type for event in ask(client, "hello", model, stream=True) if event.type != "ping"]
    assert kinds == [
        "message_start", "content_block_start", *["content_block_delta"] * len(chat_words.TEXT), "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("streamed", [False, True])
def test_tool(client: Anthropic, model: str, streamed: bool) -> None:
    messages: Any = [{"role": "user", "content": "tool"}]
    if streamed:
        with client.messages.stream(model=model, max_tokens=64, messages=messages, tools=[WEATHER]) as stream:
            found: Any = stream.get_final_message()
    else:
        found = client.messages.create(model=model, max_tokens=64, messages=messages, tools=[WEATHER])
    assert found.stop_reason == "tool_use"
    block = found.content[-1]
    assert (block.type, block.name, block.input) == ("tool_use", "get_weather", {"city": "Paris"})


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_the_result_of_a_tool_goes_back(way: Way, client: Anthropic, model: str) -> None:
    block = ask(client, "tool", model, tools=[WEATHER]).content[-1]
    result = [{"type": "tool_result", "tool_use_id": block.id, "content": f"hello from {model}"}]
    messages: Any = [
        {"role": "user", "content": "tool"}, {"role": "assistant", "content": [block.model_dump()]},
        {"role": "user", "content": result},
    ]  # fmt: skip
    found = client.messages.create(model=model, max_tokens=64, messages=messages, tools=[WEATHER])
    assert found.content[0].text == TEXT
    sent = way.server.last(f"hello from {model}")
    assert sent.path == ("/messages" if model == "m" else "/chat/completions")
    if model == "chat-only":
        assert sent.body["messages"][-1] == {
            "role": "tool",
            "tool_call_id": block.id,
            "content": "hello from chat-only",
        }
        assert sent.body["messages"][-2]["tool_calls"][0]["id"] == block.id


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("text", "error", "kind", "status"),
    [
        ("bad", anthropic.BadRequestError, "invalid_request_error", 400),
        ("busy", anthropic.RateLimitError, "rate_limit_error", 429),
        ("broken", anthropic.InternalServerError, "api_error", 500),
    ],
)
def test_errors_of_the_model_come_in_anthropics_words(
    client: Anthropic, model: str, text: str, error: type[anthropic.APIStatusError], kind: str, status: int
) -> None:
    with pytest.raises(error) as raised:
        ask(client, text, model)
    assert raised.value.status_code == status
    body = cast(dict[str, Any], raised.value.body)
    assert (body["type"], body["error"]["type"]) == ("error", kind)
    assert body["error"]["message"] == f"the model says {status}"


def test_errors_of_the_gateway_come_in_anthropics_words(client: Anthropic) -> None:
    with pytest.raises(anthropic.AuthenticationError) as refused:
        ask(client.with_options(api_key="sk-wrong-key"), "hello")
    assert refused.value.request_id == cast(Any, refused.value.body)["request_id"]
    assert cast(Any, refused.value.body)["error"]["type"] == "authentication_error"
    with pytest.raises(anthropic.NotFoundError) as unknown:
        ask(client, "hello", "no-such-model")
    assert cast(Any, unknown.value.body)["error"]["type"] == "not_found_error"


def test_a_bearer_token_is_a_key_too(way: Way) -> None:
    with Anthropic(base_url=way.url, auth_token=way.key, api_key=None, max_retries=0) as client:
        assert ask(client, "hello").content[0].text == TEXT


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_a_429_is_tried_again_after_the_time_that_the_model_named(way: Way, client: Anthropic, model: str) -> None:
    text = f"twice anthropic {model}"
    begun = time.monotonic()
    assert ask(client.with_options(max_retries=2), text, model).content[0].text == TEXT
    assert way.server.times[text] == 2
    assert time.monotonic() - begun < 0.45  # by retry-after-ms; without it the client waits 0.375 s at least


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_a_time_out_of_the_client_ends_the_request_at_the_model(way: Way, client: Anthropic, model: str) -> None:
    for text, streamed in ((f"silent anthropic {model}", False), (f"stuck anthropic {model}", True)):
        with pytest.raises((anthropic.APITimeoutError, httpx2.ReadTimeout)):
            list(ask(client.with_options(timeout=0.4), text, model, stream=streamed))
        left = time.monotonic()
        assert way.server.wait_lost(text) - left < 0.05


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_a_stream_that_breaks_is_no_whole_answer(client: Anthropic, model: str) -> None:
    with pytest.raises((anthropic.APIError, httpx2.RemoteProtocolError, httpx2.ReadError)):
        list(ask(client, "cut", model, stream=True))


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_an_error_within_a_stream_arrives(client: Anthropic, model: str) -> None:
    with pytest.raises(anthropic.APIStatusError, match="the model says 500"):
        list(ask(client, "fails", model, stream=True))


def test_raw_responses(client: Anthropic) -> None:
    messages: Any = [{"role": "user", "content": "hello"}]
    raw = client.messages.with_raw_response.create(model="m", max_tokens=64, messages=messages)
    assert raw.headers["x-of-the-model"] == "yes"
    assert raw.parse().content[0].text == TEXT  # type: ignore[union-attr]


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_the_id_of_a_request_is_told_under_the_name_that_the_client_reads(client: Anthropic, model: str) -> None:
    assert ask(client, "hello", model, extra_headers={"x-request-id": "mine-3"})._request_id == "mine-3"


def test_count_tokens(client: Anthropic) -> None:
    messages: Any = [{"role": "user", "content": "hello"}]
    assert client.messages.count_tokens(model="m", messages=messages).input_tokens == 11


def test_headers_of_anthropic_reach_a_model_that_speaks_messages(way: Way, client: Anthropic) -> None:
    ask(client, "hello beta", extra_headers={"anthropic-beta": "some-beta-2026-01-01"})
    headers = way.server.last("hello beta").headers
    assert headers["anthropic-version"] == client.default_headers["anthropic-version"]
    assert headers["anthropic-beta"] == "some-beta-2026-01-01"
    assert way.key not in json.dumps(headers)


def test_models(client: Anthropic) -> None:
    assert "m" in [model.id for model in client.models.list()]
