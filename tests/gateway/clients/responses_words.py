"""What the model server says in the dialect of OpenAI's responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.gateway.clients import chat_words

USAGE = {
    "input_tokens": 7, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12,
}  # fmt: skip


def _item(word: str, *, done: bool = True) -> dict[str, Any]:
    status = "completed" if done else "in_progress"
    if word == "tool":
        arguments = "".join(chat_words.ARGUMENTS) if done else ""
        return {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": arguments,
            "status": status,
        }
    text = "".join(chat_words.OBJECT if word == "json" else chat_words.TEXT)
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if done else []
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content}


def _response(items: list[dict[str, Any]], *, done: bool) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1700000000, "model": "m", "output": items, "tools": [],
        "status": "completed" if done else "in_progress", "parallel_tool_calls": True, "tool_choice": "auto",
        "usage": USAGE if done else None, "error": None, "incomplete_details": None, "instructions": None,
        "metadata": {}, "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip


def answer(word: str) -> dict[str, Any]:
    """A whole response."""
    return _response([_item(word)], done=True)


def events(word: str) -> Iterator[bytes]:
    """The same as a stream."""
    number = iter(range(1000))

    def event(kind: str, **fields: Any) -> bytes:
        data = json.dumps({"type": f"response.{kind}", "sequence_number": next(number), **fields}, ensure_ascii=False)
        return f"event: response.{kind}\ndata: {data}\n\n".encode()

    yield event("created", response=_response([], done=False))
    yield event("output_item.added", output_index=0, item=_item(word, done=False))
    where = {"item_id": _item(word)["id"], "output_index": 0}
    if word == "tool":
        for piece in chat_words.ARGUMENTS:
            yield event("function_call_arguments.delta", delta=piece, **where)
        yield event(
            "function_call_arguments.done", arguments="".join(chat_words.ARGUMENTS), name="get_weather", **where
        )
    else:
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield event("content_part.added", content_index=0, part=part, **where)
        for piece in chat_words.TEXT:
            yield event("output_text.delta", content_index=0, delta=piece, logprobs=[], **where)
        whole = _item(word)["content"][0]
        yield event("output_text.done", content_index=0, text=whole["text"], logprobs=[], **where)
        yield event("content_part.done", content_index=0, part=whole, **where)
    yield event("output_item.done", output_index=0, item=_item(word))
    yield event("completed", response=answer(word))
