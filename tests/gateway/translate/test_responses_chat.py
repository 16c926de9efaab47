"""The OpenAI client's responses against a back end that speaks chat completions; vLLM's own streams beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.gateway.translate.conftest import Server, openai_client, recorded, translated
from tests.gateway.translate.test_messages_chat import DONE, call, chunk
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between, sse

Serve = Callable[..., Server]
ASKED: dict[str, Any] = {"model": "demo", "input": "Hello"}
WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}


def client(server: Server) -> openai.OpenAI:
    return openai_client(server.url)


def asked_of_chat(**fields: Any) -> dict[str, Any]:
    translation = between(b"/responses", frozenset({"chat"}))
    assert translation is not None
    found = json.loads(translation.request(json.dumps({**ASKED, **fields}).encode()))
    assert isinstance(found, dict)
    return found


def comparable(event: dict[str, Any]) -> dict[str, Any]:
    """Without what is made anew for each answer and what vLLM adds or leaves null."""

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            left = {k: plain(v, k) for k, v in value.items() if k not in VLLMS and v not in (None, [])}
            if isinstance(left.get("text"), dict):  # vLLM 0.32 tells back the format by which it forced a call
                del left["text"]
            return {k: v for k, v in left.items() if v is not None}
        if isinstance(value, list):
            return [plain(one) for one in value]
        if key == "call_id":
            return bool(value)
        if key in ("id", "item_id") and isinstance(value, str):
            return value.split("_")[0]
        return value

    found = plain(event)
    assert isinstance(found, dict)
    return found


# What chat completions do not tell, or what only vLLM has; docs/gateway.md says why each is left out.
VLLMS = {
    "created_at", "phase", "presence_penalty", "frequency_penalty", "service_tier", "top_p", "max_output_tokens",
    "input_tokens_per_turn", "cached_tokens_per_turn", "output_tokens_per_turn", "tool_output_tokens_per_turn",
    "tool_output_tokens", "store", "temperature", "tool_choice", "instructions", "tools", "logprobs",
}  # fmt: skip


def events(stream: bytes) -> list[dict[str, Any]]:
    reader = sse.Reader()
    return [json.loads(event.data) for event in reader.feed(stream) + reader.end()]


def mend(theirs: list[dict[str, Any]]) -> None:
    """What vLLM 0.32 says of an answer that was cut, as 0.33 does: the event's name and the item's mark."""
    if theirs[-1]["response"]["status"] == "incomplete":
        theirs[-1]["type"] = "response.incomplete"
        for item in (theirs[-2]["item"], theirs[-1]["response"]["output"][-1]):
            item["status"] = "incomplete"


NAMES = ["text", "stop", "length", "think"]


@pytest.mark.parametrize("name", [*NAMES, "tool"])
def test_stream_is_as_vllms_own(name: str) -> None:
    """Kinds, order, numbers, text, status and usage."""
    ours = events(translated(b"/responses", "chat", recorded(f"{name}-chat.sse"), ASKED))
    theirs = events(recorded(f"{name}-responses.sse"))
    mend(theirs)
    assert [event["type"] for event in ours] == [event["type"] for event in theirs]
    assert [comparable(event) for event in ours] == [comparable(event) for event in theirs]


@pytest.mark.parametrize("name", [*NAMES, "tool", "required"])
def test_whole_answer_is_as_vllms_own(name: str, server: Serve) -> None:
    ours = client(server(f"{name}-chat.json")).responses.create(**ASKED)
    theirs = Response.model_validate_json(recorded(f"{name}-responses.json"))
    assert ours.output_text == theirs.output_text
    left, right = comparable(ours.model_dump(mode="json")), comparable(theirs.model_dump(mode="json"))
    for item in [*left["output"], *right["output"]]:
        item.pop("status", None)  # vLLM says none for reasoning in a whole answer, and "completed" in a stream
    assert left == right


def test_client_follows_a_stream(server: Serve) -> None:
    one = server("think-chat.sse")
    with client(one).responses.stream(**ASKED, instructions="Be brief.", max_output_tokens=50) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert answer.output_text == " The answer is four."
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (113, 21, 134)
    assert answer.instructions == "Be brief."
    assert answer.max_output_tokens == 50
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert one.asked == {
        "model": "demo",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_completion_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_client_follows_parallel_tools(server: Serve) -> None:
    said = chunk(tool_calls=[call(0, "", "a", "get_weather"), call(1, '{"ci', "b", "get_weather")])
    said += chunk(tool_calls=[call(0, '{"city"')]) + chunk(tool_calls=[call(1, 'ty": "Rome"}')])
    said += chunk(tool_calls=[call(0, ': "Paris"}')]) + chunk(content="Done.") + chunk(finish="tool_calls") + DONE
    with client(server(said)).responses.stream(**ASKED, tools=[WEATHER]) as stream:
        answer = stream.get_final_response()
    assert [(i.call_id, i.arguments) for i in answer.output if i.type == "function_call"] == [
        ("a", '{"city": "Paris"}'),
        ("b", '{"city": "Rome"}'),
    ]
    assert answer.output_text == "Done."
    assert answer.status == "completed"


def test_every_item_that_is_opened_is_closed_once() -> None:
    said = chunk(reasoning="hm") + chunk(content="a") + chunk(tool_calls=[call(0, "{}", "x", "f")]) + chunk(content="b")
    said += chunk(refusal="no") + chunk(tool_calls=[call(1, '{"cut', "y", "f")]) + chunk(finish="length") + DONE
    found = events(translated(b"/responses", "chat", said, ASKED))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for kind in ("added", "done"):
        indexes = [event["output_index"] for event in found if event["type"] == f"response.output_item.{kind}"]
        assert sorted(indexes) == list(range(6))
    last = found[-1]["response"]
    assert found[-1]["type"] == "response.incomplete"
    assert last["incomplete_details"] == {"reason": "max_output_tokens"}
    kinds = ["reasoning", "message", "function_call", "message", "message", "function_call"]
    assert [item["type"] for item in last["output"]] == kinds
    assert [item["status"] for item in last["output"]] == ["completed"] * 5 + ["incomplete"]
    assert last["output"][4]["content"] == [{"type": "refusal", "refusal": "no"}]


def test_custom_tools_and_namespaces(server: Serve) -> None:
    tools: list[Any] = [
        {"type": "custom", "name": "patch", "description": "d"},
        {"type": "namespace", "name": "files", "description": "", "tools": [{"type": "function", "name": "list"}]},
        {"type": "web_search"},
    ]
    said = chunk(tool_calls=[call(0, '{"input": "*** Be', "a", "patch")]) + chunk(tool_calls=[call(0, 'gin"}')])
    said += chunk(tool_calls=[call(1, "{}", "b", "files__list")]) + chunk(finish="tool_calls") + DONE
    one = server(said)
    with client(one).responses.stream(**ASKED, tools=tools, tool_choice={"type": "custom", "name": "patch"}) as stream:
        patch, files = stream.get_final_response().output
    assert (patch.type, patch.input) == ("custom_tool_call", "*** Begin")  # type: ignore[union-attr]
    assert (files.type, files.name, files.namespace) == ("function_call", "list", "files")  # type: ignore[union-attr]
    assert [tool["function"]["name"] for tool in one.asked["tools"]] == ["patch", "files__list"]
    assert one.asked["tool_choice"] == {"type": "function", "function": {"name": "patch"}}


def test_errors_in_a_stream(server: Serve) -> None:
    fault = sse.data(b'{"error":{"message":"too busy","type":"x","param":null,"code":503}}')
    found = events(translated(b"/responses", "chat", chunk(content="Hel") + fault, ASKED))
    assert (found[-1]["type"], found[-1]["message"]) == ("error", "too busy")
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    cut = events(translated(b"/responses", "chat", recorded("text-chat.sse")[:1500], ASKED))
    assert "ended before" in cut[-1]["message"]


def test_errors_in_openais_dialect(server: Serve) -> None:
    with pytest.raises(openai.BadRequestError, match="maximum context length") as long:
        client(server("error-chat.json", status=400)).responses.create(**ASKED)
    assert (long.value.code, long.value.param) == ("BadRequestError", "input_tokens")
    with pytest.raises(openai.BadRequestError, match="previous_response_id") as caught:
        client(server(b"")).responses.create(**ASKED, previous_response_id="r")
    assert caught.value.param == "previous_response_id"


def test_a_conversation() -> None:
    png = "data:image/png;base64,QUJD"
    found = asked_of_chat(
        instructions="A.",
        input=[
            {"role": "developer", "content": "B."},
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": png}],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I call."}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
            {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "p"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image", "image_url": png}]},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "two"},
            {"role": "developer", "content": "Go on."},
            {"type": "reasoning", "id": "rsc_1", "summary": [{"type": "summary_text", "text": "so"}]},
        ],
    )
    image = {"type": "image_url", "image_url": {"url": png}}
    assert found["messages"] == [
        {"role": "system", "content": "A.\n\nB."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, image]},
        {
            "role": "assistant",
            "reasoning": "hm",
            "content": "I call.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                {"id": "b", "type": "function", "function": {"name": "patch", "arguments": '{"input":"p"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": [image]},
        {"role": "system", "content": "Go on."},
        {"role": "assistant", "reasoning_content": "so", "content": ""},
    ]


def test_how_to_answer() -> None:
    found = asked_of_chat(
        temperature=0.1,
        top_p=0.9,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
        metadata={"a": "b"},
        store=False,
        include=["reasoning.encrypted_content"],
        seed=7,
        parallel_tool_calls=False,
        tools=[WEATHER],
        tool_choice={
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
    )
    function = {"name": "get_weather", "parameters": {"type": "object"}, "strict": False}
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert found == {
        "model": "demo",
        "messages": [{"role": "user", "content": "Hello"}],
        "temperature": 0.1,
        "top_p": 0.9,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": schema},
        "seed": 7,
        "parallel_tool_calls": False,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
    }
    assert asked_of_chat(text={"format": {"type": "json_object"}})["response_format"] == {"type": "json_object"}
    assert asked_of_chat(tool_choice="auto", text={"format": {"type": "text"}}) == asked_of_chat()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"input": None}, "$.input"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call", "call_id": "f"}]}, "input[0].name"),
        ({"input": [{"type": "function_call_output", "output": "f"}]}, "input[0].call_id"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "system", "content": [{"type": "input_image", "image_url": "f"}]}]}, "input[0]"),
        ({"tools": [{"type": "code_interpreter", "container": "c"}]}, "tools[0]: code_interpreter"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "custom", "name": "p", "format": {"type": "grammar"}}]}, "tools[0].format"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "mcp", "server_label": "f"}}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
    ],
)
def test_what_cannot_be_carried_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as caught:
        asked_of_chat(**fields)
    assert caught.value.status == 400
    assert named in caught.value.message


def test_a_server_that_says_little() -> None:
    said = sse.data(b'{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}') + DONE
    found = events(translated(b"/responses", "chat", said, ASKED))
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == "a"
    assert found[-1]["response"]["usage"] is None
