"""Event streams survive any cut; error bodies and answers of several servers are read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.engine.api import (
    EventStream,
    ServedModel,
    ServerSentEvent,
    Usage,
    decode,
    read_delta,
    read_fault,
    read_models,
    split_base_url,
)

TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=20)
EVENT = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)


def parse(pieces: list[bytes]) -> list[str]:
    stream = EventStream()
    return [event.data for piece in pieces for event in stream.feed(piece)]


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[list[str], list[bytes]]:
    """Events, and the bytes that carry them with any line end, comments and other fields between, cut anywhere."""
    events = draw(st.lists(EVENT, max_size=4))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    noise = draw(st.sampled_from(["", f": 注释{end}", f"id: 7{end}retry: 10{end}", f":{end}{end}"]))
    lines = [noise + "".join(f"data: {line}{end}" for line in event.split("\n")) + end for event in events]
    raw = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + "".join(lines).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    return events, [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]


@given(cut_streams())
def test_any_cut_gives_the_same_events(case: tuple[list[str], list[bytes]]) -> None:
    events, pieces = case
    assert parse(pieces) == events


def test_byte_by_byte_with_characters_of_many_bytes_and_crlf() -> None:
    raw = 'data: {"a": "你好 👋"}\r\n\r\n: x\r\n\r\nevent: error\r\ndata: 1\r\ndata:2\r\n\r\n'.encode()
    stream = EventStream()
    found = [event for at in range(len(raw)) for event in stream.feed(raw[at : at + 1])]
    assert found == [ServerSentEvent('{"a": "你好 👋"}'), ServerSentEvent("1\n2", "error")]


def test_an_unfinished_event_is_not_given() -> None:
    assert parse([b"data: 1\n\ndata: 2\n"]) == ["1"]


def test_bytes_that_are_no_text_do_not_raise() -> None:
    assert parse([b"data: \xff\xfe\n\n"]) == ["\ufffd\ufffd"]


def test_a_megabyte_in_small_pieces_costs_linear_time() -> None:
    text = json.dumps({"x": "é" * 700_000}, ensure_ascii=False)
    raw = f"data: {text}\n\n".encode()
    assert len(raw) > 1_000_000
    began = time.process_time()
    assert parse([raw[at : at + 64] for at in range(0, len(raw), 64)]) == [text]
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("body", "message", "about_length"),
    [
        (
            b'{"error":{"message":"This model\'s maximum context length is 8192 tokens. However, your prompt '
            b'contains at least 8193 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}',
            "This model's maximum context length is 8192 tokens",
            True,
        ),
        (
            b'{"message":"The decoder prompt (length 4) is longer than the maximum model length of 9."'
            b',"type":"BadRequestError","param":null,"code":400}',
            "The decoder prompt",
            True,
        ),
        (b'{"error":{"message":"no","type":"invalid","code":"context_length_exceeded"}}', "no", False),
        (b'{"error":{"code":"context_length_exceeded","message":"no"}}', "no", True),
        (b'{"error":{"code":400,"message":"the request exceeds","type":"exceed_context_size_error"}}', "the req", True),
        (b'{"error":"Unauthorized"}', "Unauthorized", False),
        (b'{"detail":"Not Found"}', "Not Found", False),
        (b'{"detail":[{"loc":["body","max_tokens"],"msg":"bad"}]}', '[{"loc"', False),
        (b"Bad Gateway", "Bad Gateway", False),
        (b"", "", False),
    ],
)
def test_error_bodies(body: bytes, message: str, about_length: bool) -> None:
    fault = read_fault(400, body)
    assert fault.message.startswith(message)
    assert fault.about_length is about_length


def test_a_web_page_is_recognised() -> None:
    assert read_fault(502, b"\n<!DOCTYPE html><html>").html
    assert not read_fault(502, b'{"error": "<html>"}').html


def test_a_404_about_the_model_is_not_one_about_the_path() -> None:
    named = b'{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":"model","code":404}}'
    assert read_fault(404, named).about_model
    assert not read_fault(404, b'{"detail":"Not Found"}').about_model


def test_answers_are_read() -> None:
    chat = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    delta = read_delta(chat)
    assert delta is not None
    assert (delta.text, delta.finish_reason, delta.usage) == ("a", "stop", Usage(3, 0))
    plain = read_delta({"choices": [{"text": "b", "finish_reason": None}]})
    assert plain is not None
    assert plain.text == "b"
    thought = read_delta({"choices": [{"delta": {"content": None, "reasoning": "hm"}}]})
    assert thought is not None
    assert thought.text == "hm"
    wrong = read_delta({"error": {"message": "dead", "code": 503}})
    assert wrong is not None
    assert wrong.fault is not None
    assert (wrong.fault.status, wrong.fault.message) == (503, "dead")
    assert read_delta({"hello": 1}) is None
    assert read_delta([1]) is None


def test_model_lists() -> None:
    listed = {"data": [{"id": "a", "max_model_len": 8}, {"id": "b", "context_window": 9}, {"id": "c"}, {"no": 1}]}
    assert read_models(listed) == (ServedModel("a", 8), ServedModel("b", 9), ServedModel("c", None))
    assert read_models({"data": []}) == ()
    assert read_models({"models": []}) is None


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", " http://h:1/v1/chat/completions "])
def test_base_urls(url: str) -> None:
    assert split_base_url(url) == "http://h:1"


def test_decode_gives_none_for_what_is_no_json() -> None:
    assert decode(b"\xff") is None
    assert decode("<html>") is None
