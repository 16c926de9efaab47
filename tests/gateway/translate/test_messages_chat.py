"""The Anthropic client against a back end that speaks chat completions; vLLM's own streams beside the translated."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.gateway.translate.conftest import Server, anthropic_client, recorded, translated
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between, sse

Serve = Callable[..., Server]
ASKED: dict[str, Any] = {"model": "demo", "max_tokens": 60, "messages": [{"role": "user", "content": "Hello"}]}
WEATHER = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def client(server: Server) -> anthropic.Anthropic:
    return anthropic_client(server.url)


def asked_of_chat(**fields: Any) -> dict[str, Any]:
    translation = between(b"/messages", frozenset({"chat"}))
    assert translation is not None
    found = json.loads(translation.request(json.dumps({**ASKED, **fields}).encode()))
    assert isinstance(found, dict)
    return found


def refusal(**fields: Any) -> str:
    with pytest.raises(Refused) as caught:
        asked_of_chat(**fields)
    assert caught.value.status == 400
    return caught.value.message


def events(stream: bytes) -> list[dict[str, Any]]:
    reader = sse.Reader()
    found = [json.loads(event.data) for event in reader.feed(stream) + reader.end()]
    for event in found:  # ids are made anew for each answer
        if "message" in event:
            event["message"].pop("id")
        event.get("content_block", {}).pop("id", None)
        if event.get("delta", {}).get("type") == "signature_delta":
            event["delta"].pop("signature")
    return found


def chunk(**delta: Any) -> bytes:
    finish = delta.pop("finish", None)
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse.data(json.dumps({"id": "c", "model": "m", "created": 1, "choices": [choice]}).encode())


def call(index: int, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


DONE = sse.data(b"[DONE]")


@pytest.mark.parametrize("name", ["text", "stop", "length", "think", "tool"])
def test_stream_is_as_vllms_own(name: str) -> None:
    """Kinds, order, text and usage. vLLM tells the prompt's tokens at the start, too: chat tells them at the end."""
    ours = events(translated(b"/messages", "chat", recorded(f"{name}-chat.sse"), ASKED))
    theirs = events(recorded(f"{name}-messages.sse"))
    theirs[0]["message"]["usage"] = {"input_tokens": 0, "output_tokens": 0}
    for event in ours:  # the client's own types ask for it
        if event.get("content_block", {}).get("type") == "thinking":
            assert event["content_block"].pop("signature") == ""
    assert ours == theirs


@pytest.mark.parametrize("name", ["text", "stop", "length", "think", "tool", "required"])
def test_whole_answer_is_as_vllms_own(name: str, server: Serve) -> None:
    ours = client(server(f"{name}-chat.json")).messages.create(**ASKED)
    theirs = anthropic.types.Message.model_validate_json(recorded(f"{name}-messages.json"))
    theirs.id = ours.id
    for mine, block in zip(ours.content, theirs.content, strict=True):
        if block.type in ("thinking", "tool_use"):
            for made_anew in ("id", "signature"):
                if hasattr(block, made_anew):
                    setattr(block, made_anew, getattr(mine, made_anew))
    assert ours.model_dump(exclude_none=True) == theirs.model_dump(exclude_none=True)


def test_client_follows_a_stream(server: Serve) -> None:
    one = server("think-chat.sse")
    with client(one).messages.stream(**ASKED, system="Be brief.") as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == " The answer is four."
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 113, 21)
    assert one.path == b"/chat/completions"
    assert one.asked["stream_options"] == {"include_usage": True}
    assert one.asked["messages"][0] == {"role": "system", "content": "Be brief."}


def test_client_follows_parallel_tools(server: Serve) -> None:
    """Pieces of two calls that come by turns become two blocks, one after the other; nothing is lost."""
    said = chunk(role="assistant", content="") + chunk(content="Let me see.")
    said += chunk(tool_calls=[call(0, "", "a", "get_weather"), call(1, '{"ci', "b", "get_weather")])
    said += chunk(tool_calls=[call(0, '{"city"')]) + chunk(tool_calls=[call(1, 'ty": "Rome"}')])
    said += chunk(tool_calls=[call(0, ': "Paris"}')]) + chunk(content="Done.") + chunk(finish="tool_calls") + DONE
    with client(server(said)).messages.stream(**ASKED, tools=[WEATHER]) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use", "text"]
    assert [(b.id, b.input) for b in message.content if b.type == "tool_use"] == [
        ("a", {"city": "Paris"}),
        ("b", {"city": "Rome"}),
    ]
    assert message.stop_reason == "tool_use"


def test_calls_of_the_same_index_with_new_ids_are_two(server: Serve) -> None:
    said = chunk(tool_calls=[call(0, '{"a":1}', "a", "f")]) + chunk(tool_calls=[call(0, "{}", "b", "f")])
    said += chunk(finish="tool_calls") + DONE
    with client(server(said)).messages.stream(**ASKED) as stream:
        blocks = stream.get_final_message().content
    assert [(b.id, b.input) for b in blocks if b.type == "tool_use"] == [("a", {"a": 1}), ("b", {})]


def test_calls_that_never_become_whole_end_one_after_the_other() -> None:
    said = chunk(tool_calls=[call(0, '{"a', "a", "f"), call(1, '{"b', "b", "f")]) + chunk(tool_calls=[call(0, '":1')])
    found = events(translated(b"/messages", "chat", said + chunk(finish="length") + DONE, ASKED))
    pieces = [(e["index"], e["delta"]["partial_json"]) for e in found if e["type"] == "content_block_delta"]
    assert pieces == [(0, '{"a'), (0, '":1'), (1, '{"b')]
    assert found[-2]["delta"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("piece", [1, 2, 3, 64, 100_000])
def test_stream_is_the_same_however_it_is_cut(piece: int) -> None:
    said = recorded("think-chat.sse")
    assert translated(b"/messages", "chat", said, ASKED, piece=piece) == translated(b"/messages", "chat", said, ASKED)


def test_a_stream_that_is_cut_ends_in_an_error(server: Serve) -> None:
    one = server(recorded("text-chat.sse")[:1200])
    with pytest.raises(anthropic.APIError, match="ended before"), client(one).messages.stream(**ASKED) as stream:
        stream.get_final_message()


def test_an_error_within_a_stream(server: Serve) -> None:
    fault = sse.data(b'{"error":{"message":"too busy","type":"ServiceUnavailable","param":null,"code":503}}')
    found = events(translated(b"/messages", "chat", chunk(content="Hel") + fault + DONE, ASKED))
    assert [event["type"] for event in found][-2:] == ["content_block_stop", "error"]
    assert found[-1]["error"] == {"type": "overloaded_error", "message": "too busy"}


@pytest.mark.parametrize("wrong", [b"{", b'{"choices": 3}', b"[]", b'{"choices":[{"delta":{"content":7}}]}'])
def test_an_event_that_is_none_ends_in_an_error(wrong: bytes) -> None:
    found = events(translated(b"/messages", "chat", chunk(content="a") + sse.data(wrong) + chunk(content="b"), ASKED))
    assert found[-1]["error"]["type"] == "api_error"


def test_comments_keep_the_connection_awake() -> None:
    said = translated(b"/messages", "chat", sse.comment(b"wait") + recorded("text-chat.sse"), ASKED)
    assert said.startswith(b": wait\n\nevent: message_start")


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [(400, "error-chat.json", anthropic.BadRequestError), (404, "error-model-chat.json", anthropic.NotFoundError)],
)
def test_errors_in_anthropics_dialect(status: int, name: str, kind: type[Exception], server: Serve) -> None:
    message = json.loads(recorded(name))["error"]["message"]
    with pytest.raises(kind) as caught:
        client(server(name, status=status)).messages.create(**ASKED)
    assert isinstance(caught.value, anthropic.APIStatusError)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["message"] == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"object":"error","message":"old","type":"BadRequestError","code":400}', "old"),
        (b'{"error":"plain"}', "plain"),
        (b"<html>Bad gateway</html>", "the back end answered 502"),
        (b"", "the back end answered 502"),
        (b'{"detail":[{"loc":["body"]}]}', '{"loc":["body"]}'),
    ],
)
def test_errors_of_any_shape(body: bytes, message: str) -> None:
    translation = between(b"/messages", frozenset({"chat"}))
    assert translation is not None
    found = json.loads(translation.error(502, body))
    assert found == {"type": "error", "error": {"type": "api_error", "message": message}, "request_id": None}


def test_tokens_are_counted(server: Serve) -> None:
    one = server("count-tokenize.json", speaks="tokenize")
    counted = client(one).messages.count_tokens(
        model="demo",
        messages=[{"role": "user", "content": "Say: the sky is blue."}],
        system="You answer briefly.",
        tools=[{"name": "f", "input_schema": {"type": "object"}}],
    )
    assert counted.input_tokens == json.loads(recorded("count-messages.json"))["input_tokens"] == 25
    assert one.path == b"/tokenize"
    assert set(one.asked) == {"model", "messages", "tools"}


def test_what_is_asked_of_chat() -> None:
    found = asked_of_chat(
        system=[
            {"type": "text", "text": "x-anthropic-billing-header: 1"},
            {"type": "text", "text": "A."},
            {"type": "text", "text": "B.", "cache_control": {"type": "ephemeral"}},
        ],
        stop_sequences=["x"],
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        metadata={"user_id": "u"},
        tools=[{**WEATHER, "description": "d", "strict": True}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    function = {
        "name": "get_weather",
        "description": "d",
        "parameters": WEATHER["input_schema"],
        "strict": True,
    }
    schema = {"name": "json_schema", "schema": {"type": "object"}, "strict": True}
    assert found == {
        "model": "demo",
        "messages": [{"role": "system", "content": "A.B."}, {"role": "user", "content": "Hello"}],
        "max_completion_tokens": 60,
        "stop": ["x"],
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


@pytest.mark.parametrize(
    ("choice", "there"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tool_choice(choice: dict[str, Any], there: object) -> None:
    assert asked_of_chat(tools=[WEATHER], tool_choice=choice)["tool_choice"] == there


def test_thinking_that_is_off() -> None:
    assert asked_of_chat(thinking={"type": "disabled"})["reasoning_effort"] == "none"


def test_a_turn_with_tools_and_images() -> None:
    png = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    far = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}
    found = asked_of_chat(
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Look"}, png, far, pdf]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "reasoning_content"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "I call."},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": [1, "é"]}},
                    {"type": "tool_use", "id": "b", "name": "g", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}, png]},
                    {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
                    {"type": "text", "text": "Go on."},
                ],
            },
            {"role": "system", "content": "Now in French."},
        ]
    )
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert found["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                shown,
                {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
                {
                    "type": "file",
                    "file": {"file_data": "data:application/pdf;base64,QUJD", "filename": "document.pdf"},
                },
            ],
        },
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "I call.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":[1,"é"]}'}},
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": [shown, {"type": "text", "text": "Go on."}]},
        {"role": "system", "content": "Now in French."},
    ]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": "many"}, "$.max_tokens"),
        ({"container": "c"}, "container"),
        ({"wild": 1}, "wild"),
        ({"messages": 3}, "$.messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "$.messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "server_tool_use"}]}]}, "$.messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "thinking", "thinking": ""}]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]},
            "tool_result",
        ),
        ({"messages": [{"role": "system", "content": [{"type": "redacted_thinking"}]}]}, "messages[0].content[0]"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]: web_search_20250305"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"output_config": {"format": {"type": "xml"}}}, "$.output_config.format.type"),
    ],
)
def test_what_cannot_be_carried_is_named(fields: dict[str, Any], named: str) -> None:
    assert named in refusal(**fields)


def test_fields_that_are_null_are_absent() -> None:
    assert asked_of_chat(container=None, tools=None, system=None) == asked_of_chat()


def test_arguments_that_are_no_object_are_not_run(server: Serve) -> None:
    said = json.loads(recorded("text-chat.json"))
    said["choices"][0]["message"] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"city": "Par'}}],
    }
    said["choices"][0]["finish_reason"] = "length"
    message = client(server(json.dumps(said).encode())).messages.create(**ASKED)
    assert [block.model_dump(exclude_none=True) for block in message.content] == [
        {"type": "text", "text": '{"city": "Par'}
    ]
    assert message.stop_reason == "max_tokens"


def test_refusals_and_cached_tokens(server: Serve) -> None:
    said = json.loads(recorded("text-chat.json"))
    said["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "No."}
    said["usage"]["prompt_tokens_details"] = {"cached_tokens": 16}
    message = client(server(json.dumps(said).encode())).messages.create(**ASKED)
    assert (message.stop_reason, message.content[0].model_dump()["text"]) == ("refusal", "No.")
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (9, 16)


def test_a_whole_answer_that_is_none_is_refused() -> None:
    for said in (b"", b"{}", b'{"choices":[]}', b"[1]", b'{"choices":[{"message":{"content":5}}]}'):
        translation = between(b"/messages", frozenset({"chat"}))
        assert translation is not None
        with pytest.raises(Refused) as caught:
            translation.answer(said)
        assert caught.value.status == 502


def test_bytes_pass_where_the_back_end_speaks_it() -> None:
    assert between(b"/messages", frozenset({"messages", "chat"})) is None
    assert between(b"/embeddings", frozenset({"chat"})) is None
    assert between(b"/messages", frozenset({"embeddings"})) is None


def test_a_server_that_says_little() -> None:
    """Nothing but null where others say something, "" until the finish, no finish at all, calls without ids."""
    little = {"id": None, "model": None, "created": None, "usage": None}
    said = sse.data(json.dumps({**little, "choices": None}).encode())
    for delta in ({"content": "a"}, {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}):
        choice = {"index": None, "delta": delta, "finish_reason": ""}
        said += sse.data(json.dumps({**little, "choices": [choice]}).encode())
    found = events(translated(b"/messages", "chat", said + DONE, ASKED))
    assert [event["type"] for event in found][-2:] == ["message_delta", "message_stop"]
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    again = translated(b"/messages", "chat", said + DONE, ASKED)
    ids = [event.split(b'"')[0] for event in again.split(b'"id":"')[1:]]
    assert len(ids) == 2
    assert all(ids)
    cut = events(translated(b"/messages", "chat", said, ASKED))
    assert cut[-1]["type"] == "error"


def test_no_choice_where_there_are_no_tools() -> None:
    assert "tool_choice" not in asked_of_chat(tool_choice={"type": "auto"})
    assert "tool_choice" not in asked_of_chat(tools=[], tool_choice={"type": "none"})
    assert asked_of_chat(tool_choice={"type": "any"})["tool_choice"] == "required"
