"""The OpenAI client's chat completions against a back end that speaks Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from tests.gateway.translate.conftest import Server, openai_client, recorded, translated
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between, sse

Serve = Callable[..., Server]
ASKED: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
PDF = "data:application/pdf;base64,QUJD"


def client(server: Server) -> openai.OpenAI:
    return openai_client(server.url)


def asked_of_messages(**fields: Any) -> dict[str, Any]:
    translation = between(b"/chat/completions", frozenset({"messages"}))
    assert translation is not None
    found = json.loads(translation.request(json.dumps({**ASKED, **fields}).encode()))
    assert isinstance(found, dict)
    return found


def event(type: str, **fields: Any) -> bytes:
    return sse.event(type, json.dumps({"type": type, **fields}).encode())


def begun(**usage: int) -> bytes:
    return event("message_start", message={"id": "m", "model": "c", "content": [], "usage": usage})


def block(index: int, begins: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    said = event("content_block_start", index=index, content_block=begins)
    said += b"".join(event("content_block_delta", index=index, delta=delta) for delta in deltas)
    return said + event("content_block_stop", index=index)


def ended(reason: str, **usage: int) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage=usage) + event("message_stop")


def chunks(stream: bytes) -> list[dict[str, Any]]:
    reader = sse.Reader()
    return [json.loads(e.data) for e in reader.feed(stream) + reader.end() if e.data != b"[DONE]" and e.name != b":"]


OBJECT = {"type": "tool_use", "id": "t", "name": "json_object_answer", "input": {}}
AS_JSON: dict[str, Any] = {"response_format": {"type": "json_object"}}


def test_any_json_object_is_asked_for_with_a_tool() -> None:
    asked = asked_of_messages(**AS_JSON)
    assert [tool["name"] for tool in asked["tools"]] == [OBJECT["name"]]
    assert asked["tool_choice"] == {"type": "tool", "name": OBJECT["name"]}
    beside = asked_of_messages(**AS_JSON, tools=[WEATHER])
    assert [tool["name"] for tool in beside["tools"]] == ["get_weather", OBJECT["name"]]
    assert beside["tool_choice"] == {"type": "any"}
    assert asked_of_messages(**AS_JSON, tools=[WEATHER], tool_choice="none")["tool_choice"]["type"] == "tool"
    forced = asked_of_messages(**AS_JSON, tools=[WEATHER], tool_choice="required")
    assert [tool["name"] for tool in forced["tools"]] == ["get_weather"]


def test_the_object_is_the_answer(server: Serve) -> None:
    said = {"id": "m", "model": "c", "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}}
    blocks = [{"type": "text", "text": "Here:"}, {**OBJECT, "input": {"a": [1]}}]
    whole = server(json.dumps({**said, "content": blocks}).encode(), speaks="messages")
    choice = client(whole).chat.completions.create(**ASKED, **AS_JSON).choices[0]
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert json.loads(choice.message.content or "") == {"a": [1]}
    both = [*blocks, {"type": "tool_use", "id": "w", "name": "get_weather", "input": {}}]
    called = server(json.dumps({**said, "content": both}).encode(), speaks="messages")
    choice = client(called).chat.completions.create(**ASKED, **AS_JSON, tools=[WEATHER]).choices[0]  # type: ignore[call-overload]
    assert (choice.finish_reason, len(choice.message.tool_calls)) == ("tool_calls", 1)


@pytest.mark.parametrize(
    ("blocks", "reason", "text", "finish"),
    [
        ([({"type": "text", "text": "Here:"}, ()), (OBJECT, ('{"a"', ": 1}"))], "tool_use", '{"a": 1}', "stop"),
        ([(OBJECT, ())], "tool_use", "{}", "stop"),
        ([(OBJECT, ('{"a"',))], "max_tokens", '{"a"', "length"),
        ([({"type": "text", "text": "No."}, ())], "refusal", "No.", "content_filter"),
    ],
)
def test_the_object_in_a_stream(blocks: list[Any], reason: str, text: str, finish: str) -> None:
    deltas = [[{"type": "input_json_delta", "partial_json": piece} for piece in pieces] for _, pieces in blocks]
    said = b"".join(block(at, begins, *deltas[at]) for at, (begins, _) in enumerate(blocks))
    found = chunks(translated(b"/chat/completions", "messages", begun() + said + ended(reason), {**ASKED, **AS_JSON}))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in found) == text
    assert found[-1]["choices"][0]["finish_reason"] == finish
    assert not any("tool_calls" in chunk["choices"][0]["delta"] for chunk in found)


NAMES = ["text", "stop", "length", "think"]


@pytest.mark.parametrize("name", NAMES)
def test_stream_is_as_vllms_own(name: str) -> None:
    """Each piece, the finish and the usage."""
    asked = {**ASKED, "stream_options": {"include_usage": True}}
    ours = chunks(translated(b"/chat/completions", "messages", recorded(f"{name}-messages.sse"), asked))
    theirs = chunks(recorded(f"{name}-chat.sse"))
    seen: dict[str, list[Any]] = {}
    for which, said in (("ours", ours), ("theirs", theirs)):
        pieces = [c["choices"][0] for c in said if c["choices"]]
        for piece in pieces:
            piece["delta"].pop("reasoning_content", None)
        found = [({k: v for k, v in p["delta"].items() if v is not None}, p["finish_reason"]) for p in pieces]
        usage = said[-1]["usage"]
        found += [(usage["prompt_tokens"], usage["completion_tokens"]), pieces[-1].get("stop_reason")]
        seen[which] = [one for one in found if one != ({}, None)]
    if seen["theirs"][-3][0]:  # vLLM tells the finish with the last piece, or in one of its own
        last = seen["theirs"].pop(-3)
        seen["theirs"][-2:-2] = [(last[0], None), ({}, last[1])]
    assert seen["ours"] == seen["theirs"]


@pytest.mark.parametrize("name", NAMES)
def test_whole_answer_is_as_vllms_own(name: str, server: Serve) -> None:
    ours = client(server(f"{name}-messages.json", speaks="messages")).chat.completions.create(**ASKED)
    theirs = ChatCompletion.model_validate_json(recorded(f"{name}-chat.json"))
    mine, own = ours.choices[0].model_dump(), theirs.choices[0].model_dump()
    for key in ("finish_reason", "stop_reason"):
        assert mine.get(key) == own[key]
    for key in ("content", "reasoning", "role"):
        assert mine["message"].get(key) == own["message"][key]
    assert ours.usage is not None
    assert theirs.usage is not None
    assert ours.usage.total_tokens == theirs.usage.total_tokens
    assert ours.usage.prompt_tokens == theirs.usage.prompt_tokens


def test_client_follows_a_stream(server: Serve) -> None:
    said = event("ping") + begun(input_tokens=3, cache_read_input_tokens=4)
    said += block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hm"})
    said += block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I call."})
    tool = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {}}
    half = [{"type": "input_json_delta", "partial_json": p} for p in ('{"city"', ': "Paris"}')]
    said += block(2, tool, *half) + block(3, {**tool, "id": "b", "input": {"city": "Rome"}})
    one = server(said + ended("tool_use", output_tokens=9), speaks="messages")
    with client(one).chat.completions.stream(
        **ASKED, tools=[WEATHER], stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    message = answer.choices[0].message
    assert message.content == "I call."
    assert message.model_dump()["reasoning_content"] == "hm"
    calls = message.tool_calls or []
    assert [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls] == [
        ("a", "get_weather", {"city": "Paris"}),
        ("b", "get_weather", {"city": "Rome"}),
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 9)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 4
    assert one.path == b"/messages"
    assert one.asked["max_tokens"] == 4096


def test_usage_is_told_to_who_asks() -> None:
    said = begun(input_tokens=1) + block(0, {"type": "text", "text": "a"}) + ended("end_turn", output_tokens=1)
    assert all("usage" not in c for c in chunks(translated(b"/chat/completions", "messages", said, ASKED)))


@pytest.mark.parametrize("piece", [1, 2, 3, 64, 100_000])
def test_stream_is_the_same_however_it_is_cut(piece: int) -> None:
    said, asks = recorded("think-messages.sse"), b"/chat/completions"
    created = chunks(translated(asks, "messages", said, ASKED))[0].pop("created")
    assert isinstance(created, int)
    found = chunks(translated(asks, "messages", said, ASKED, piece=piece))
    whole = chunks(translated(asks, "messages", said, ASKED))
    assert [c["choices"] for c in found] == [c["choices"] for c in whole]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("tool_use", "tool_calls"),
     ("refusal", "content_filter"), ("pause_turn", "stop"), ("model_context_window_exceeded", "length")],
)  # fmt: skip
def test_stop_reasons(reason: str, finish: str) -> None:
    found = chunks(translated(b"/chat/completions", "messages", begun() + ended(reason), ASKED))
    assert found[-1]["choices"][0]["finish_reason"] == finish


def test_errors_in_a_stream(server: Serve) -> None:
    fault = event("error", error={"type": "overloaded_error", "message": "too busy"})
    with pytest.raises(openai.APIError, match="too busy"):
        list(client(server(begun() + fault, speaks="messages")).chat.completions.create(**ASKED, stream=True))
    with pytest.raises(openai.APIError, match="ended before"):
        list(client(server(begun(), speaks="messages")).chat.completions.create(**ASKED, stream=True))


def test_errors_in_openais_dialect(server: Serve) -> None:
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    with pytest.raises(openai.RateLimitError, match="slow down"):
        client(server(body, speaks="messages", status=429)).chat.completions.create(**ASKED)


def test_a_conversation() -> None:
    png = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    far = {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}}
    function = {"name": "f", "arguments": '{"x": 1}'}
    found = asked_of_messages(
        messages=[
            {"role": "system", "content": "A."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, png, far]},
            {"role": "user", "content": [{"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}}]},
            {
                "role": "assistant",
                "content": None,
                "reasoning": "hm",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": function},
                    {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "2"}]},
            {"role": "developer", "content": [{"type": "text", "text": "B."}]},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "", "refusal": "No."},
        ]
    )
    assert found["system"] == [{"type": "text", "text": "A."}, {"type": "text", "text": "B."}]
    assert found["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
                    "title": "a.pdf",
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "g", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "Go on."},
            ],
        },
        {"role": "assistant", "content": "No."},
    ]


def test_how_to_answer() -> None:
    found = asked_of_messages(
        max_tokens=5,
        stop="x",
        temperature=0.1,
        seed=1,
        frequency_penalty=0.5,
        logit_bias={},
        n=1,
        tools=[{**WEATHER, "function": {**WEATHER["function"], "description": "d", "strict": True}}],  # type: ignore[dict-item]
        tool_choice="required",
        parallel_tool_calls=False,
        reasoning_effort="minimal",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    )
    assert found == {
        "model": "demo",
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 5,
        "stop_sequences": ["x"],
        "temperature": 0.1,
        "tools": [{"name": "get_weather", "input_schema": {"type": "object"}, "description": "d", "strict": True}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    }
    assert asked_of_messages(reasoning_effort="none")["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("choice", "there"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "get_weather"}}, {"type": "tool", "name": "get_weather"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [WEATHER]}}, {"type": "any"}),
    ],
)
def test_tool_choice(choice: object, there: object) -> None:
    assert asked_of_messages(tools=[WEATHER], tool_choice=choice).get("tool_choice") == there


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n": 2}, "n: "),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "structural_tag"}}, "response_format"),
        ({"tool_choice": "maybe", "tools": [WEATHER]}, "tool_choice"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "$.tools[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "$.messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "messages[0]"),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "$.messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x,y"}}]}]},
            "messages[0].content[0]",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "[1]"}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_what_cannot_be_carried_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as caught:
        asked_of_messages(**fields)
    assert caught.value.status == 400
    assert named in caught.value.message


def test_responses_over_two_translations(server: Serve) -> None:
    """From responses to chat to messages, and back."""
    one = server("think-messages.sse", speaks="messages")
    with client(one).responses.stream(model="demo", input="Hello", instructions="Be brief.") as stream:
        answer = stream.get_final_response()
    assert answer.output_text == " The answer is four."
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (113, 21)
    assert one.path == b"/messages"
    assert one.asked["system"] == "Be brief."
    whole = client(server("stop-messages.json", speaks="messages")).responses.create(model="demo", input="Hello")
    assert whole.output_text == "The number of"
    fault = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    with pytest.raises(openai.RateLimitError, match="slow down"):
        client(server(fault, speaks="messages", status=429)).responses.create(model="demo", input="Hello")


def test_bytes_of_a_back_end_that_are_no_text() -> None:
    begins = {"type": "tool_use", "id": "a", "name": "f", "input": {"city": "X"}}
    said = (begun() + block(0, begins) + ended("tool_use")).replace(b"X", b"\xff")
    found = chunks(translated(b"/chat/completions", "messages", said, ASKED))
    arguments = [c["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] for c in found[1:3]]
    assert arguments == ["", '{"city": "\ufffd"}']


def test_ids_are_as_anthropic_makes_them() -> None:
    call = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call["id"], "content": "1"}]
    asked, given = (turn["content"][0] for turn in asked_of_messages(messages=turns)["messages"])
    assert asked["id"] == given["tool_use_id"] == "functions_f_0"
