"""Whatever a client sends and whatever a back end answers: a valid body, or one error that says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import MessageCreateParams, RawMessageStreamEvent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk, CompletionCreateParams
from openai.types.responses import ResponseCreateParams, ResponseStreamEvent
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from tests.gateway.translate.conftest import recorded
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import between, sse

ASKS = (b"/chat/completions", b"/messages", b"/responses")
SPOKEN = {"chat": CompletionCreateParams, "messages": MessageCreateParams, "responses": ResponseCreateParams}
PAIRS = [(asks, speaks) for asks in ASKS for speaks in SPOKEN if asks[1:].decode()[:4] != speaks[:4]]
EVENTS = {
    b"/messages": RawMessageStreamEvent,
    b"/responses": ResponseStreamEvent,
    b"/chat/completions": ChatCompletionChunk,
}


def eager(schema: Any) -> Any:
    """A pydantic schema that reads the client libraries' iterables at once, where they would be read when used."""
    if isinstance(schema, dict):
        found = {key: eager(value) for key, value in schema.items()}
        return {**found, "type": "list"} if schema.get("type") == "generator" else found
    return [eager(one) for one in schema] if isinstance(schema, list) else schema


def typed(kind: Any) -> SchemaValidator:
    return SchemaValidator(eager(TypeAdapter(kind).core_schema))


BODIES = {name: typed(kind) for name, kind in SPOKEN.items()}


def check_body(speaks: str, body: bytes) -> None:
    BODIES[speaks].validate_python(json.loads(body))


@pytest.mark.parametrize(
    ("speaks", "body"),
    [
        ("chat", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": 3}}]}]}),
        ("messages", {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}),
        ("responses", {"input": "x", "tools": [{"type": "function", "name": "x"}]}),
    ],
)
def test_the_check_can_fail(speaks: str, body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check_body(speaks, json.dumps({"model": "m", **body}).encode())


name = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
said = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
schema = st.fixed_dictionaries({"type": st.just("object")}, optional={"properties": st.just({"a": {"type": "string"}})})
arguments = st.dictionaries(
    name, st.one_of(st.integers(), text, st.none(), st.lists(st.booleans(), max_size=2)), max_size=3
)
PNG = "data:image/png;base64,QUJD"


def some(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


def tagged(type: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(type), **fields})


def turn(role: str, content: Any, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return some({"role": st.just(role), "content": content}, **optional)


def many(of: Any, at_least: int = 0) -> Any:
    return st.lists(of, min_size=at_least, max_size=3)


messages_image = tagged("image", source=st.just({"type": "base64", "media_type": "image/png", "data": "QUJD"}))
messages_text = tagged("text", text=said)
messages_user = st.one_of(
    messages_text,
    messages_image,
    tagged("document", source=st.just({"type": "base64", "media_type": "application/pdf", "data": "QUJD"})),
    tagged("tool_result", tool_use_id=name, content=st.one_of(text, many(st.one_of(messages_text, messages_image)))),
)
messages_assistant = st.one_of(
    messages_text,
    tagged("thinking", thinking=text, signature=text),
    tagged("tool_use", id=name, name=name, input=arguments),
    tagged("redacted_thinking", data=text),
)
MESSAGES = some(
    {
        "model": name,
        "max_tokens": st.integers(1, 99),
        "messages": many(
            st.one_of(
                turn("user", st.one_of(text, many(messages_user, 1))),
                turn("assistant", st.one_of(text, many(messages_assistant, 1))),
                turn("system", text),
            ),
            1,
        ),
    },
    system=st.one_of(text, many(messages_text)),
    tools=many(some({"name": name, "input_schema": schema}, description=text, type=st.just("custom")), 1),
    tool_choice=st.one_of(
        some({"type": st.sampled_from(["auto", "any"])}, disable_parallel_tool_use=st.booleans()),
        tagged("tool", name=name),
        tagged("none"),
    ),
    stop_sequences=many(said),
    temperature=st.floats(0, 1),
    stream=st.booleans(),
    metadata=st.just({"user_id": "u"}),
    thinking=st.sampled_from([{"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}]),
    output_config=some({}, effort=st.sampled_from(["low", "max"]), format=tagged("json_schema", schema=schema)),
    cache_control=st.just({"type": "ephemeral"}),
)
chat_image = tagged("image_url", image_url=some({"url": st.sampled_from([PNG, "https://example.com/x"])}))
chat_text = tagged("text", text=text)
chat_call = tagged(
    "function", id=name, function=st.fixed_dictionaries({"name": name, "arguments": arguments.map(json.dumps)})
)
CHAT = some(
    {
        "model": name,
        "messages": many(
            st.one_of(
                turn("system", st.one_of(text, many(chat_text, 1))),
                turn("developer", text),
                turn("user", st.one_of(text, many(st.one_of(chat_text, chat_image), 1))),
                turn("assistant", text, tool_calls=many(chat_call, 1), reasoning=text, refusal=text),
                turn("tool", st.one_of(text, many(chat_text, 1))).map(lambda t: {**t, "tool_call_id": "a"}),
            ),
            1,
        ),
    },
    tools=many(tagged("function", function=some({"name": name}, description=text, parameters=schema)), 1),
    tool_choice=st.one_of(
        st.sampled_from(["auto", "none", "required"]),
        tagged("function", function=st.fixed_dictionaries({"name": name})),
    ),
    max_tokens=st.integers(1, 99),
    stop=st.one_of(said, many(said, 1)),
    stream=st.booleans(),
    stream_options=st.just({"include_usage": True}),
    temperature=st.floats(0, 2),
    reasoning_effort=st.sampled_from(["none", "minimal", "high"]),
    response_format=st.one_of(
        tagged("text"),
        tagged("json_object"),
        tagged("json_schema", json_schema=st.fixed_dictionaries({"name": name, "schema": schema})),
    ),
    n=st.sampled_from([1, 2]),
    seed=st.integers(0, 9),
    parallel_tool_calls=st.booleans(),
)
input_text = tagged("input_text", text=text)
input_image = tagged("input_image", image_url=st.just(PNG), detail=st.just("auto"))
output = st.one_of(text, many(st.one_of(input_text, input_image), 1))
RESPONSES = some(
    {
        "model": name,
        "input": st.one_of(
            text,
            many(
                st.one_of(
                    turn("user", st.one_of(text, many(st.one_of(input_text, input_image), 1))),
                    turn("developer", text),
                    turn("assistant", text),
                    tagged("function_call", call_id=name, name=name, arguments=arguments.map(json.dumps)),
                    tagged("function_call_output", call_id=name, output=output),
                    tagged("custom_tool_call", call_id=name, name=name, input=text),
                    tagged("reasoning", id=name, summary=many(tagged("summary_text", text=text))),
                ),
                1,
            ),
        ),
    },
    instructions=text,
    tools=many(
        st.one_of(
            tagged("function", name=name, parameters=schema, strict=st.booleans()),
            tagged("custom", name=name),
            tagged("web_search"),
            tagged("code_interpreter", container=st.just("c")),
        )
    ),
    tool_choice=st.one_of(st.sampled_from(["auto", "none", "required"]), tagged("function", name=name)),
    text=some({}, format=st.one_of(tagged("text"), tagged("json_schema", name=name, schema=schema))),
    reasoning=some({}, effort=st.sampled_from(["low", "high"])),
    max_output_tokens=st.integers(16, 99),
    stream=st.booleans(),
    store=st.booleans(),
    include=st.just(["reasoning.encrypted_content"]),
)
REQUESTS = {b"/messages": MESSAGES, b"/chat/completions": CHAT, b"/responses": RESPONSES}
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), text, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(many(inner), st.dictionaries(text, inner, max_size=3)),
    max_leaves=5,
)
LIGHT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def tried(act: Callable[[], bytes]) -> tuple[bytes, Refused | None]:
    """What came of it: a body, or a refusal; any other exception fails the test."""
    try:
        return act(), None
    except Refused as refused:
        return b"", refused


def replaced(value: Any, at: int, by: Any) -> Any:
    """`value` with the leaf or branch number `at` (depth first) replaced."""
    count = -1

    def walk(one: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            return by
        if isinstance(one, dict):
            return {key: walk(inner) for key, inner in one.items()}
        return [walk(inner) for inner in one] if isinstance(one, list) else one

    return walk(value)


@pytest.mark.parametrize(("asks", "speaks"), PAIRS)
@LIGHT
@given(data=st.data())
def test_a_good_request_gives_a_good_body(asks: bytes, speaks: str, data: st.DataObject) -> None:
    asked = data.draw(REQUESTS[asks])
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    body, refused = tried(lambda: translation.request(json.dumps(asked).encode()))
    if refused is None:
        check_body(speaks, body)
    else:
        assert (refused.status, bool(refused.param)) == (400, True)


@pytest.mark.parametrize(("asks", "speaks"), PAIRS)
@LIGHT
@given(data=st.data())
def test_a_spoilt_request_is_taken_or_refused(asks: bytes, speaks: str, data: st.DataObject) -> None:
    asked = replaced(data.draw(REQUESTS[asks]), data.draw(st.integers(0, 40)), data.draw(anything))
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    body, refused = tried(lambda: translation.request(json.dumps(asked).encode()))
    assert json.loads(body) if refused is None else (refused.status == 400 and refused.message)


@pytest.mark.parametrize("depth", [*range(960, 1000, 2), 5000])
def test_deep_nesting_is_taken_or_refused(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    turn = '{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":' + deep + "}]}"
    translation = between(b"/messages", frozenset({"chat"}))
    assert translation is not None
    tools = '[{"name":"f","input_schema":' + deep + "}]"
    asked = '{"model":"m","max_tokens":5,"messages":[' + turn + '],"tools":' + tools + "}"
    body, refused = tried(lambda: translation.request(asked.encode()))
    assert body if refused is None else refused.status == 400


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b'{"model":"m"}', b'{"a":' * 2000, b'"\\ud800"'])
@pytest.mark.parametrize(("asks", "speaks"), [*PAIRS, (b"/messages/count_tokens", "tokenize")])
def test_what_is_no_request(asks: bytes, speaks: str, body: bytes) -> None:
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    with pytest.raises(Refused) as caught:
        translation.request(body)
    assert caught.value.status == 400


ADAPTERS: dict[bytes, TypeAdapter[Any]] = {asks: TypeAdapter(kind) for asks, kind in EVENTS.items()}


def check_stream(asks: bytes, stream: bytes) -> None:
    reader = sse.Reader()
    for event in reader.feed(stream) + reader.end():
        if event.name == b":" or event.data == b"[DONE]" or event.name == b"error":
            continue
        found = json.loads(event.data)
        if "error" not in found:
            ADAPTERS[asks].validate_python(found)


@pytest.mark.parametrize("kind", ["text", "stop", "length", "think", "tool"])
@pytest.mark.parametrize(("asks", "speaks"), PAIRS)
def test_streams_are_of_the_clients_own_types(asks: bytes, speaks: str, kind: str) -> None:
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    way = translation.stream()
    check_stream(asks, way.feed(recorded(f"{kind}-{speaks}.sse")) + way.end())


@pytest.mark.parametrize(("asks", "speaks"), PAIRS)
@LIGHT
@given(data=st.data())
def test_a_spoilt_stream_is_no_exception(asks: bytes, speaks: str, data: st.DataObject) -> None:
    """Events changed, left out, doubled or out of order."""
    reader = sse.Reader()
    events = reader.feed(recorded(f"{data.draw(st.sampled_from(['text', 'think', 'tool']))}-{speaks}.sse"))
    picked = data.draw(st.lists(st.sampled_from(events), max_size=12))
    stream = b""
    for event in picked:
        body = event.data
        if body != b"[DONE]" and data.draw(st.booleans()):
            spoilt = replaced(json.loads(body), data.draw(st.integers(0, 20)), data.draw(anything))
            body = json.dumps(spoilt).encode()
        stream += sse.event(event.name.decode(), body) if event.name else sse.data(body)
    cut = data.draw(st.integers(0, len(stream)))
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    way = translation.stream()
    said = way.feed(stream[:cut]) + way.feed(stream[cut:]) + way.end()
    assert way.feed(b"data: late\n\n") + way.end() == b""
    reader = sse.Reader()
    for told in reader.feed(said) + reader.end():
        if told.name != b":" and told.data != b"[DONE]":
            json.loads(told.data)


@pytest.mark.parametrize(("asks", "speaks"), PAIRS)
@LIGHT
@given(data=st.data())
def test_a_spoilt_answer_is_taken_or_refused(asks: bytes, speaks: str, data: st.DataObject) -> None:
    whole = json.loads(recorded(f"{data.draw(st.sampled_from(['text', 'think', 'tool']))}-{speaks}.json"))
    spoilt = replaced(whole, data.draw(st.integers(0, 40)), data.draw(anything))
    translation = between(asks, frozenset({speaks}))
    assert translation is not None
    body, refused = tried(lambda: translation.answer(json.dumps(spoilt).encode()))
    assert json.loads(body) if refused is None else refused.status == 502
    json.loads(translation.error(500, json.dumps(spoilt).encode()))
