"""What the model server says in the dialect of OpenAI's chat completions, as vLLM words it."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

ID = "chatcmpl-0123456789abcdef"
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 3}}
TEXT = ["Hello", " there", ", wörld", " 你好", "!"]
OBJECT = ['{"name":', '"Ada",', '"age":36}']
ARGUMENTS = ['{"city":', '"Pa', 'ris"}']
VECTOR = [0.25, -0.5, 1.0]


def _choice(message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}


def answer(word: str) -> dict[str, Any]:
    """A whole chat completion."""
    if word == "tool":
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": "".join(ARGUMENTS)},
        }
        choice = _choice({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
    else:
        text = "".join(OBJECT if word == "json" else TEXT)
        choice = _choice({"role": "assistant", "content": text, "tool_calls": []}, "stop")
    return {
        "id": ID,
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
    }


def event(value: Any) -> bytes:
    """A server-sent event that is only data."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _chunk(delta: dict[str, Any] | None, reason: str | None = None, usage: Any = None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
    chunk = {"id": ID, "object": "chat.completion.chunk", "created": 1700000000, "model": "m", "choices": choices}
    return event({**chunk, "usage": usage} if usage else chunk)


def events(word: str, usage: bool) -> Iterator[bytes]:
    """The same as a stream; `usage`: with the event that tells it."""
    yield _chunk({"role": "assistant", "content": ""})
    if word == "tool":
        first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
        yield _chunk({"tool_calls": [first]})
        for piece in ARGUMENTS:
            yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield _chunk({}, "tool_calls")
    else:
        pieces = OBJECT if word == "json" else ["word "] * 2000 if word == "long" else TEXT
        for piece in pieces:
            yield _chunk({"content": piece})
            if word == "fails":
                yield event(error(500))
        yield _chunk({}, "stop")
    if usage:
        yield _chunk(None, usage=USAGE)
    yield b"data: [DONE]\n\n"


def completion() -> dict[str, Any]:
    """A whole completion."""
    choice = {"index": 0, "text": "".join(TEXT), "logprobs": None, "finish_reason": "stop"}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1700000000,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
    }


def completion_events() -> Iterator[bytes]:
    """The same as a stream."""
    for number, piece in enumerate(TEXT):
        reason = "stop" if number == len(TEXT) - 1 else None
        choice = {"index": 0, "text": piece, "logprobs": None, "finish_reason": reason}
        yield event(
            {"id": "cmpl-1", "object": "text_completion", "created": 1700000000, "model": "m", "choices": [choice]}
        )
    yield b"data: [DONE]\n\n"


def embeddings(body: Any) -> dict[str, Any]:
    """One vector for each input, as base64 where asked: openai-python asks for it unless told otherwise."""
    given = body["input"] if isinstance(body["input"], list) else [body["input"]]
    packed = base64.b64encode(struct.pack("<3f", *VECTOR)).decode()
    vector = packed if body.get("encoding_format") == "base64" else VECTOR
    data = [{"object": "embedding", "index": at, "embedding": vector} for at in range(len(given))]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 4, "total_tokens": 4}}


def error(status: int) -> dict[str, Any]:
    """An error as vLLM's server words it."""
    said = {"message": f"the model says {status}", "type": "BadRequestError", "param": "temperature", "code": status}
    return {"error": said}
