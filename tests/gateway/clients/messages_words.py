"""What the model server says in the dialect of Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.gateway.clients import chat_words

USAGE = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 3}
KINDS = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error"}


def _message(content: list[dict[str, Any]], reason: str | None, usage: dict[str, int]) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "content": content, "model": "m", "stop_reason": reason,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def answer(word: str) -> dict[str, Any]:
    """A whole message."""
    if word == "tool":
        block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}}
        return _message([block], "tool_use", USAGE)
    text = "".join(chat_words.OBJECT if word == "json" else chat_words.TEXT)
    return _message([{"type": "text", "text": text}], "end_turn", USAGE)


def _event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def events(word: str) -> Iterator[bytes]:
    """The same as a stream."""
    yield _event("message_start", message=_message([], None, {**USAGE, "output_tokens": 0}))
    tool = word == "tool"
    empty: dict[str, Any] = {"type": "text", "text": ""}
    if tool:
        empty = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    yield _event("content_block_start", index=0, content_block=empty)
    for piece in chat_words.ARGUMENTS if tool else chat_words.TEXT:
        delta = {"type": "input_json_delta", "partial_json": piece} if tool else {"type": "text_delta", "text": piece}
        yield _event("content_block_delta", index=0, delta=delta)
        if word == "fails":
            yield _event("error", error=error(500)["error"])
    yield _event("content_block_stop", index=0)
    reason = "tool_use" if tool else "end_turn"
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=USAGE)
    yield _event("message_stop")


def error(status: int) -> dict[str, Any]:
    """An error in Anthropic's words."""
    return {"type": "error", "error": {"type": KINDS.get(status, "api_error"), "message": f"the model says {status}"}}
