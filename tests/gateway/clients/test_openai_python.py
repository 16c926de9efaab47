"""openai-python's own behaviours through the gateway, in front of back ends that speak all protocols or one alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel

from tests.gateway.clients import chat_words
from tests.gateway.clients.conftest import Way
from tests.gateway.clients.model_server import LENGTH
from tests.gateway.process import until

TEXT = "".join(chat_words.TEXT)
CHAT = ["m", "chat-only", "messages-only"]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Person(BaseModel):
    """What the structured answer is read into."""

    name: str
    age: int


@pytest.fixture
def client(way: Way) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{way.url}/v1", api_key=way.key, max_retries=0, timeout=20) as made:
        yield made


def ask(client: OpenAI, text: str, model: str = "m", **more: Any) -> Any:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **more)


@pytest.mark.parametrize("model", CHAT)
def test_chat(client: OpenAI, model: str) -> None:
    found = ask(client, "hello", model)
    assert (found.choices[0].message.content, found.choices[0].finish_reason) == (TEXT, "stop")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (
        (7, 5) if model != "messages-only" else (10, 5)
    )


def test_fields_that_the_gateway_does_not_know_reach_the_model(way: Way, client: OpenAI) -> None:
    ask(client, "hello fields", temperature=0.5, seed=7, extra_body={"top_k": 20, "chat_template_kwargs": {"x": True}})
    body = way.server.last("hello fields").body
    assert (body["temperature"], body["seed"], body["top_k"]) == (0.5, 7, 20)
    assert body["chat_template_kwargs"] == {"x": True}


@pytest.mark.parametrize("model", CHAT)
def test_stream(client: OpenAI, model: str) -> None:
    chunks = list(ask(client, "hello", model, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == TEXT
    assert [c.choices[0].finish_reason for c in chunks][-1] == "stop"
    assert all(c.usage is None for c in chunks)  # it was not asked for


@pytest.mark.parametrize("model", CHAT)
def test_stream_with_usage(client: OpenAI, model: str) -> None:
    *chunks, last = ask(client, "hello", model, stream=True, stream_options={"include_usage": True})
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == TEXT
    assert (last.choices, last.usage.completion_tokens) == ([], 5)


@pytest.mark.parametrize("model", CHAT)
@pytest.mark.parametrize("streamed", [False, True])
def test_tool(client: OpenAI, model: str, streamed: bool) -> None:
    messages: Any = [{"role": "user", "content": "tool"}]
    if streamed:
        with client.chat.completions.stream(model=model, messages=messages, tools=[WEATHER]) as stream:
            found: Any = stream.get_final_completion()
    else:
        found = client.chat.completions.create(model=model, messages=messages, tools=[WEATHER])
    assert found.choices[0].finish_reason == "tool_calls"
    call = found.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris"})


def test_the_result_of_a_tool_goes_back_as_it_was_said(way: Way, client: OpenAI) -> None:
    call = ask(client, "tool", tools=[WEATHER]).choices[0].message
    messages: Any = [
        {"role": "user", "content": "tool"}, call,
        {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "hello from Paris"},
    ]  # fmt: skip
    assert client.chat.completions.create(model="m", messages=messages).choices[0].message.content == TEXT
    sent = way.server.last("hello from Paris").body["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_1"


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_structured_output(way: Way, client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": f"json for {model}"}]
    parsed = client.chat.completions.parse(model=model, messages=messages, response_format=Person)
    assert parsed.choices[0].message.parsed == Person(name="Ada", age=36)
    asked = way.server.last(f"json for {model}").body["response_format"]
    assert (asked["type"], asked["json_schema"]["name"]) == ("json_schema", "Person")


def test_structured_output_streamed(client: OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "json"}]
    with client.chat.completions.stream(model="m", messages=messages, response_format=Person) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_completion().choices[0].message.parsed == Person(name="Ada", age=36)
    assert kinds.count("content.delta") == 1 + len(chat_words.OBJECT)  # the first one is empty
    assert "content.done" in kinds


@pytest.mark.parametrize(
    ("text", "error", "status"),
    [
        ("bad", openai.BadRequestError, 400),
        ("unprocessable", openai.UnprocessableEntityError, 422),
        ("busy", openai.RateLimitError, 429),
        ("broken", openai.InternalServerError, 500),
    ],
)
def test_errors_of_the_model_arrive_as_it_said_them(
    client: OpenAI, text: str, error: type[openai.APIStatusError], status: int
) -> None:
    with pytest.raises(error) as raised:
        ask(client, text)
    assert raised.value.status_code == status
    assert cast(dict[str, Any], raised.value.body)["message"] == f"the model says {status}"
    assert raised.value.param == "temperature"


def test_a_wrong_key_and_an_unknown_model(way: Way, client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(client.with_options(api_key="sk-wrong-key"), "hello")
    assert refused.value.type == "invalid_request_error"
    assert "sk-wrong-key" not in str(refused.value)
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(client, "hello", "no-such-model")
    assert unknown.value.code == "model_not_found"
    assert "no-such-model" in unknown.value.message


def test_a_key_in_blanks_or_quotes_is_named(way: Way, client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError, match="the key is right but came with quotes"):
        ask(client.with_options(api_key=f'"{way.key}"'), "hello")


def test_a_429_is_tried_again_after_the_time_that_the_model_named(way: Way, client: OpenAI) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        ask(client, "busy")
    assert (raised.value.response.headers["retry-after"], raised.value.response.headers["retry-after-ms"]) == (
        "1",
        "20",
    )
    begun = time.monotonic()
    found = ask(client.with_options(max_retries=2), "twice openai-python")
    assert found.choices[0].message.content == TEXT
    assert way.server.times["twice openai-python"] == 2
    assert time.monotonic() - begun < 0.45  # by retry-after-ms; without it openai-python waits 0.375 s at least


def test_a_time_out_of_the_client_ends_the_request_at_the_model_within_50_ms(way: Way, client: OpenAI) -> None:
    for text, streamed in (("silent openai-python", False), ("stuck openai-python", True)):
        with pytest.raises((openai.APITimeoutError, httpx2.ReadTimeout)):
            list(ask(client.with_options(timeout=0.4), text, stream=streamed))
        left = time.monotonic()
        assert way.server.wait_lost(text) - left < 0.05


def test_a_stream_that_is_left_ends_at_the_model_within_50_ms(way: Way, client: OpenAI) -> None:
    stream = ask(client, "stuck and left", stream=True)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    left = time.monotonic()
    stream.close()
    assert way.server.wait_lost("stuck and left") - left < 0.05


def test_a_stream_that_breaks_is_no_whole_answer(client: OpenAI) -> None:
    with pytest.raises(openai.APIError, match="broke off"):
        list(ask(client, "cut", stream=True))


def test_an_error_within_a_stream_arrives(client: OpenAI) -> None:
    with pytest.raises(openai.APIError, match="the model says 500"):
        list(ask(client, "fails", stream=True))


def test_raw_responses(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=[{"role": "user", "content": "hello"}], extra_headers={"X-Request-Id": "mine-1"}
    )
    assert raw.headers["x-of-the-model"] == "yes"
    assert raw.headers["x-request-id"] == "mine-1"
    assert raw.parse().choices[0].message.content == TEXT
    with client.chat.completions.with_streaming_response.create(
        model="m", messages=[{"role": "user", "content": "hello"}], stream=True
    ) as streamed:
        assert streamed.headers["content-type"].startswith("text/event-stream")
        lines = list(streamed.iter_lines())
    assert lines == [line for event in chat_words.events("hello", False) for line in event.decode().split("\n")[:-1]]


def test_the_id_of_a_request_reaches_the_model_and_comes_back(way: Way, client: OpenAI) -> None:
    found = ask(client, "hello with an id", extra_headers={"X-Request-Id": "mine-2"})
    assert found._request_id == "mine-2"
    assert way.server.last("hello with an id").headers["x-request-id"] == "mine-2"
    assert ask(client, "hello")._request_id


def test_the_clients_key_stays_in_the_gateway(way: Way, client: OpenAI) -> None:
    ask(client, "hello secret")
    seen = way.server.last("hello secret")
    assert way.key not in json.dumps(seen.headers)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_embeddings(client: OpenAI, form: Any) -> None:
    more = {"encoding_format": form} if form else {}
    found = client.embeddings.create(model="m", input=["one", "two"], **more)
    assert len(found.data) == 2
    if form != "base64":
        assert found.data[0].embedding == chat_words.VECTOR


def test_models(client: OpenAI) -> None:
    assert {card.id for card in client.models.list()} >= {"m", "chat-only", "messages-only"}
    until(lambda: getattr(client.models.retrieve("m"), "max_model_len", None) == LENGTH, "the context is told")
    assert {card.id: getattr(card, "max_model_len", None) for card in client.models.list()}["m"] == LENGTH
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_completions(client: OpenAI) -> None:
    assert client.completions.create(model="m", prompt="hello").choices[0].text == TEXT
    chunks = list(client.completions.create(model="m", prompt="hello", stream=True))
    assert "".join(c.choices[0].text for c in chunks) == TEXT


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_responses(client: OpenAI, model: str) -> None:
    found = client.responses.create(model=model, input="hello")
    assert (found.output_text, found.status) == (TEXT, "completed")
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 5)


@pytest.mark.parametrize("model", ["m", "chat-only"])
def test_responses_streamed(client: OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input="hello") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == TEXT
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert kinds.count("response.output_text.delta") == len(chat_words.TEXT)


@pytest.mark.parametrize("model", ["m", "chat-only"])
@pytest.mark.parametrize("streamed", [False, True])
def test_responses_with_a_tool(client: OpenAI, model: str, streamed: bool) -> None:
    tool: Any = {"type": "function", **WEATHER["function"]}
    if streamed:
        with client.responses.stream(model=model, input="tool", tools=[tool]) as stream:
            found: Any = stream.get_final_response()
    else:
        found = client.responses.create(model=model, input="tool", tools=[tool])
    call = found.output[-1]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "get_weather", {"city": "Paris"})


def test_many_at_once_each_get_their_own(way: Way) -> None:
    async def one(client: AsyncOpenAI, number: int) -> str:
        text = ("hello", "json")[number % 2]
        found = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}], stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in found])

    async def run() -> list[str]:
        async with AsyncOpenAI(base_url=f"{way.url}/v1", api_key=way.key, max_retries=0) as client:
            return await asyncio.gather(*(one(client, number) for number in range(24)))

    assert asyncio.run(run()) == [TEXT, "".join(chat_words.OBJECT)] * 12


def test_a_long_stream_is_whole(client: OpenAI) -> None:
    chunks = list(ask(client, "long", stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "word " * 2000


def test_speech_is_passed_on(client: OpenAI) -> None:
    found = client.audio.transcriptions.create(model="m", file=("a.wav", b"RIFF0000WAVE"), response_format="json")
    assert found.text == "what was said"
