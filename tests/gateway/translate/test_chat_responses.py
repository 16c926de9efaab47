"""The OpenAI client's chat completions against a back end that speaks responses; Anthropic messages over both."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion

from tests.gateway.translate.conftest import Server, anthropic_client, openai_client, recorded, translated
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between, sse

Serve = Callable[..., Server]
ASKED: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


def client(server: Server) -> openai.OpenAI:
    return openai_client(server.url)


def asked_of_responses(**fields: Any) -> dict[str, Any]:
    translation = between(b"/chat/completions", frozenset({"responses"}))
    assert translation is not None
    found = json.loads(translation.request(json.dumps({**ASKED, **fields}).encode()))
    assert isinstance(found, dict)
    return found


def event(type: str, **fields: Any) -> bytes:
    return sse.event(type, json.dumps({"type": type, **fields}).encode())


def response(status: str, **fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "created_at": 5.0, "status": status, "output": [], **fields}


CREATED = event("response.created", response=response("in_progress"))


def chunks(stream: bytes) -> list[dict[str, Any]]:
    reader = sse.Reader()
    return [json.loads(e.data) for e in reader.feed(stream) + reader.end() if e.data != b"[DONE]"]


NAMES = ["text", "stop", "length", "think"]


@pytest.mark.parametrize("name", NAMES)
def test_stream_is_as_vllms_own(name: str) -> None:
    """Each piece, the finish and the usage."""
    asked = {**ASKED, "stream_options": {"include_usage": True}}
    ours = chunks(translated(b"/chat/completions", "responses", recorded(f"{name}-responses.sse"), asked))
    theirs = chunks(recorded(f"{name}-chat.sse"))
    seen: list[Any] = []
    for said in (ours, theirs):
        pieces = [c["choices"][0] for c in said if c["choices"]]
        text = [(p["delta"].get("content"), p["delta"].get("reasoning")) for p in pieces]
        usage = said[-1]["usage"]
        finish = [p["finish_reason"] for p in pieces if p["finish_reason"]]
        seen.append(([t for t in text if any(t)], finish, usage["prompt_tokens"], usage["total_tokens"]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", [*NAMES, "tool", "required"])
def test_whole_answer_is_as_vllms_own(name: str, server: Serve) -> None:
    ours = client(server(f"{name}-responses.json", speaks="responses")).chat.completions.create(**ASKED)
    theirs = ChatCompletion.model_validate_json(recorded(f"{name}-chat.json"))
    mine, own = ours.choices[0], theirs.choices[0]
    assert mine.finish_reason == (
        "tool_calls" if name == "tool" else own.finish_reason
    )  # vLLM says stop: it was forced
    assert (mine.message.content or "") == (own.message.content or "")
    assert mine.message.model_dump().get("reasoning") == own.message.model_dump()["reasoning"]
    calls = [[(c.function.name, c.function.arguments) for c in m.message.tool_calls or []] for m in (mine, own)]  # type: ignore[union-attr]
    assert calls[0] == calls[1]
    assert ours.usage is not None
    assert theirs.usage is not None
    assert ours.usage.total_tokens == theirs.usage.total_tokens


def test_client_follows_a_stream_with_tools(server: Serve) -> None:
    said = CREATED + event("response.reasoning_summary_text.delta", delta="hm", output_index=0)
    for at, call_id in enumerate("ab", start=1):
        item = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": "get_weather",
            "arguments": "",
        }
        said += event("response.output_item.added", output_index=at, item=item)
    for at, piece in ((1, '{"city"'), (2, '{"city": "Rome"}'), (1, ': "Paris"}')):
        said += event("response.function_call_arguments.delta", output_index=at, delta=piece)
    said += event("response.refusal.delta", output_index=3, delta="no")
    usage = {"input_tokens": 7, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 4}}
    said += event("response.completed", response=response("completed", usage=usage))
    one = server(said, speaks="responses")
    with client(one).chat.completions.stream(
        **ASKED, tools=[WEATHER], stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    message = answer.choices[0].message
    assert [(c.id, c.function.arguments) for c in message.tool_calls or []] == [
        ("a", '{"city": "Paris"}'),
        ("b", '{"city": "Rome"}'),
    ]
    assert (message.refusal, answer.choices[0].finish_reason) == ("no", "tool_calls")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (16, 4)
    assert one.path == b"/responses"


def test_failures_in_a_stream(server: Serve) -> None:
    failed = response("failed", error={"code": "server_error", "message": "too busy"})
    for said, words in (
        (CREATED + event("response.failed", response=failed), "too busy"),
        (CREATED + event("error", code="x", message="broken", param=None), "broken"),
        (CREATED, "ended before"),
        (CREATED + sse.data(b"{}"), "an event that is none"),
    ):
        with pytest.raises(openai.APIError, match=words):
            list(client(server(said, speaks="responses")).chat.completions.create(**ASKED, stream=True))


def test_a_whole_answer_that_failed(server: Serve) -> None:
    failed = response("failed", error={"code": "server_error", "message": "too busy"})
    with pytest.raises(openai.InternalServerError, match="too busy"):
        client(server(json.dumps(failed).encode(), speaks="responses")).chat.completions.create(**ASKED)


def test_a_conversation() -> None:
    png = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    found = asked_of_responses(
        messages=[
            {"role": "system", "content": "A."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look"}, png, {"type": "file", "file": {"file_id": "f"}}],
            },
            {
                "role": "assistant",
                "content": "I call.",
                "reasoning": "hm",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}, png]},
            {"role": "developer", "content": "B."},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ]
    )
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"}
    assert found["input"] == [
        {"role": "system", "content": "A."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Look"}, image, {"type": "input_file", "file_id": "f"}],
        },
        {"role": "assistant", "content": "I call."},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "1"}, image]},
        {"role": "developer", "content": "B."},
        {"role": "assistant", "content": "No."},
    ]


def test_how_to_answer() -> None:
    found = asked_of_responses(
        max_tokens=5,
        temperature=0.1,
        reasoning_effort="low",
        verbosity="low",
        seed=3,
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    )
    assert found == {
        "model": "demo",
        "input": [{"role": "user", "content": "Hello"}],
        "store": False,
        "max_output_tokens": 5,
        "temperature": 0.1,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "seed": 3,
        "tools": [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}],
        "tool_choice": {"type": "function", "name": "get_weather"},
        "parallel_tool_calls": False,
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n": 2}, "n: "),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]}, "messages[0].content[0]"),
    ],
)
def test_what_cannot_be_carried_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as caught:
        asked_of_responses(**fields)
    assert caught.value.status == 400
    assert named in caught.value.message


def test_messages_over_two_translations(server: Serve) -> None:
    """From messages to chat to responses, and back."""
    one = server("think-responses.sse", speaks="responses")
    with anthropic_client(one.url).messages.stream(**ASKED, max_tokens=50, system="Be brief.") as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (113, 21)
    assert one.asked["input"][0] == {"role": "system", "content": "Be brief."}
    assert one.asked["max_output_tokens"] == 50
    failed = server(b'{"error":{"message":"no","code":"x"}}', speaks="responses", status=400)
    with pytest.raises(anthropic.BadRequestError, match="no"):
        anthropic_client(failed.url).messages.create(**ASKED, max_tokens=5)
