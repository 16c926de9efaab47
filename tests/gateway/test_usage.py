"""Usage read off answers of every dialect, whatever pieces they come in, and nothing that only looks like it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.scripted import STREAM_HEAD, answer, chunk, events, one, run, until
from trimtab.gateway import errors
from trimtab.gateway.flow import Renamed, names, next_number
from trimtab.gateway.request import Refused
from trimtab.gateway.usage import BodyUsage, StreamUsage, Usage

TEXT = 'say "usage": {"prompt_tokens": 99} — 数据: \n\ndata: x'
DELTA = {"choices": [{"delta": {"content": TEXT}}]}
TOLD = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
LAST = {"choices": [], "usage": TOLD}


def stream(*parts: Any, end: bytes = b"\n\n") -> bytes:
    return b"".join(events(*parts, end=end))


STREAMS: dict[str, tuple[bytes, Usage | None]] = {
    "chat": (stream(DELTA, LAST, b"[DONE]"), Usage(7, 2, 4)),
    "usage in the last piece of text": (stream({**DELTA, "usage": TOLD}, b"[DONE]"), Usage(7, 2, 4)),
    "null until the end": (stream({**DELTA, "usage": None}, LAST), Usage(7, 2, 4)),
    "in every event": (stream({**DELTA, "usage": {"prompt_tokens": 7, "completion_tokens": 1}}, LAST), Usage(7, 2, 4)),
    "messages": (
        stream(
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 3}}},
            {"type": "content_block_delta", "delta": {"text": TEXT}},
            {"type": "message_delta", "usage": {"output_tokens": 9}},
        ),
        Usage(8, 9, 3),
    ),
    "responses": (
        stream(
            {"type": "response.created", "response": {"usage": None}},
            {
                "type": "response.completed",
                "response": {
                    "usage": {"input_tokens": 5, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 2}}
                },
            },
        ),
        Usage(5, 6, 2),
    ),
    "only in text": (stream(DELTA, b"[DONE]"), None),
    "an error with a message": (stream({"type": "error", "message": "usage", "usage": 3}), None),
    "a comment and several fields": (b": ping\n\nevent: x\nid: 1\n" + stream(LAST), Usage(7, 2, 4)),
    "data over several lines": (b'data: {"choices":[],\ndata: "usage":{"prompt_tokens":7}}\n\n', Usage(7)),
    "no empty line at the end": (stream(DELTA) + stream(LAST)[:-2], Usage(7, 2, 4)),
}


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize(("data", "usage"), STREAMS.values(), ids=STREAMS.keys())
@pytest.mark.parametrize("hide", [False, True])
def test_a_stream_tells_its_usage_cut_at_every_byte(data: bytes, usage: Usage | None, end: bytes, hide: bool) -> None:
    data = data.replace(b"\n", end[: len(end) // 2])
    kept = data
    if hide:
        hidden = [e for e in data.split(end) if b'"choices": []' in e or b'"choices":[]' in e]
        for event in hidden:
            kept = kept.replace(event + end, b"") if event + end in kept else kept.replace(event, b"")
    for cut in range(len(data)):
        reading = StreamUsage(hide=hide)
        out = reading.pass_on(data[:cut]) + reading.pass_on(data[cut:]) + reading.rest()
        assert (out, reading.usage()) == (kept, usage)
    reading = StreamUsage(hide=hide)
    out = b"".join(reading.pass_on(data[i : i + 1]) for i in range(len(data))) + reading.rest()
    assert (out, reading.usage()) == (kept, usage)


def test_a_streams_names_are_put_back_cut_at_every_byte() -> None:
    data = stream({"model": "m", **DELTA}, {"model": "mm", **DELTA}, b'{"model":"m"}', LAST, {"model": "m"})
    wanted = data.replace(b'"model": "m"', b'"model": "mine"').replace(b'"model":"m"', b'"model":"mine"')
    assert wanted.count(b"mine") == 3
    for cut in range(len(data)):
        reading = StreamUsage(hide=False, names=names("m", "mine"))
        assert reading.pass_on(data[:cut]) + reading.pass_on(data[cut:]) + reading.rest() == wanted
    reading = StreamUsage(hide=False, names=names("m", "mine"))
    assert reading.pass_on(data[:-1]) + reading.rest() == wanted[:-1]  # the last line's end is missing


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 90)), st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]))
def test_only_whole_events_are_passed_on(sizes: list[int], end: bytes) -> None:
    data = stream(DELTA, LAST, DELTA, b"[DONE]", end=end)
    reading, at, sent = StreamUsage(hide=True), 0, b""
    for size in [*sizes, len(data)]:
        sent += reading.pass_on(data[at : at + size])
        at += size
        assert not sent or sent.endswith((end, end[:-1]))
    assert sent == stream(DELTA, DELTA, b"[DONE]", end=end)


def test_an_event_of_a_megabyte_in_small_pieces() -> None:
    data = stream({"choices": [{"delta": {"content": "x" * (1 << 20)}}]}, LAST)
    reading = StreamUsage(hide=True)
    out = b"".join(reading.pass_on(data[i : i + 100]) for i in range(0, len(data), 100)) + reading.rest()
    assert out == stream({"choices": [{"delta": {"content": "x" * (1 << 20)}}]})
    assert reading.usage() == Usage(7, 2, 4)


BODIES: dict[str, tuple[Any, Usage | None]] = {
    "chat": ({"choices": [{"message": {"content": TEXT}}], "usage": TOLD}, Usage(7, 2, 4)),
    "long before it": ({"choices": ["x" * 50_000], "usage": TOLD}, Usage(7, 2, 4)),
    "long behind it": ({"usage": TOLD, "prompt_logprobs": ["x" * 50_000]}, Usage(7, 2, 4)),
    "very long before it": ({"data": ["x" * 400_000], "usage": TOLD}, Usage(7, 2, 4)),
    "messages": ({"content": [], "usage": {"input_tokens": 3, "output_tokens": 4}}, Usage(3, 4)),
    "embeddings": ({"data": [], "usage": {"prompt_tokens": 5, "total_tokens": 5}}, Usage(5)),
    "rerank": ({"results": [], "usage": {"total_tokens": 6}}, Usage(6)),
    "a tool's field of that name": ({"tools": [{"parameters": {"usage": {"prompt_tokens": 9}}}]}, None),
    "DeepSeek's cache": ({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}}, Usage(9, 0, 8)),
    "null": ({"usage": None}, None),
    "not as it should be": ({"usage": {"prompt_tokens": "many"}}, None),
    "an array": ([], None),
}


@pytest.mark.parametrize(("body", "usage"), BODIES.values(), ids=BODIES.keys())
def test_a_body_tells_its_usage(body: Any, usage: Usage | None) -> None:
    data = json.dumps(body).encode()
    for size in (len(data), 1000, 7):
        reading = BodyUsage()
        assert b"".join(reading.pass_on(data[i : i + size]) for i in range(0, len(data), size)) == data
        assert reading.usage() == usage


def test_what_no_back_end_told_is_counted_by_its_tokenizer() -> None:
    """The prompt by /tokenize afterwards, the answer by its events; else by its bytes."""

    async def test() -> None:
        go = asyncio.Event()

        def script(n: int, request: bytes) -> list[Any]:
            if request.startswith(b"POST /tokenize "):
                assert json.loads(request.partition(b"\r\n\r\n")[2]) == {"model": "m", "messages": [1]}
                return [answer({"count": 41, "max_model_len": 4096, "tokens": []})]
            return [STREAM_HEAD, *[chunk(event) for event in events(*[DELTA] * 5)], b"0\r\n\r\n"]

        async with one(script) as (running, _):
            await running.ask({"stream": True, "messages": [1]})
            await until(lambda: bool(running.records))
            found = [(r.prompt_tokens, r.completion_tokens, r.counted) for r in running.records]
            assert found == [(41, 5, False)]
        silent = [STREAM_HEAD, *[chunk(event) for event in events(*[DELTA] * 5)], go]
        async with one(silent, protocols=("chat",)) as (running, back_end):
            _, writer = await running.send(b"")
            writer.close()
            asking = asyncio.create_task(running.ask({"stream": True, "messages": ["x" * 400]}))
            await until(lambda: any(e._events is not None and e._events.deltas == 5 for e in running.front.live))
            asking.cancel()
            await until(lambda: bool(running.records))
            found = [(r.status, r.completion_tokens, r.counted) for r in running.records]
            assert found == [(499, 5, False)]
            assert 100 <= running.records[0].prompt_tokens <= 120
            await back_end.left.wait()

    run(test())


def test_an_error_within_a_response_goes_on_counting() -> None:
    numbered = (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d}\n\n'
    )
    for pieces, following in (
        ([], 0),
        ([numbered % 0 + numbered % 1], 2),
        ([numbered % 7, b": awake\n\n"], 8),
        ([(numbered % 11)[:50], (numbered % 11)[50:]], 12),
        ([numbered % 4, b"event: half"], 5),
    ):
        flow = Renamed(StreamUsage(hide=False), "there", "here", streamed=True, length=-1)
        for piece in pieces:
            flow.pass_on(piece)
        assert next_number(flow) == following
    told = json.loads(errors.event(b"/responses", Refused(502, "c", "m"), number=3).split(b"data: ")[1])
    assert told == {"type": "error", "code": "c", "message": "m", "param": None, "sequence_number": 3}
