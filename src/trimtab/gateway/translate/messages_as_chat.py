"""Answers of a back end that speaks Anthropic messages, whole and streamed, as OpenAI chat completions."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import messages, sse
from trimtab.gateway.translate.translation import CUT, EventStream, both_reasonings

_encode = msgspec.json.Encoder().encode
OBJECT = "json_object_answer"  # the tool by which a JSON object is asked for: what it is called with is the answer
_FINISH = {
    "max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls",
    "refusal": "content_filter",
}  # fmt: skip
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 503,
}  # fmt: skip


def completion(answer: messages.Answer, *, wants_object: bool = False) -> dict[str, Any]:
    """A whole answer; `wants_object`: it was asked for with OBJECT. Refused 502 if it holds none."""
    if answer.stop_reason is None and not answer.content:
        raise Refused(502, "back_end_failed", "the back end's answer holds no content")
    calls = [block for block in answer.content if block.type == "tool_use"]
    objects = [block for block in calls if wants_object and block.name == OBJECT]
    if objects:  # what the model said beside it is no JSON
        text = _text(objects[0].input) or "{}"
        calls = [block for block in calls if block.name != OBJECT]
    else:
        text = "".join(block.text for block in answer.content if block.type == "text")
    thought = "".join(block.thinking for block in answer.content if block.type == "thinking")
    said: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    said.update(both_reasonings(thought) if thought else {})
    if calls:
        said["tool_calls"] = [_call(block) for block in calls]
    reason = _reason(answer.stop_reason, objects and not calls)
    choice = {"index": 0, "message": said, "logprobs": None, **_finish(reason, answer.stop_sequence)}
    return {
        "id": answer.id, "object": "chat.completion", "created": int(time.time()), "model": answer.model,
        "choices": [choice], "usage": _usage(answer.usage or messages.Usage()),
    }  # fmt: skip


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")  # what is skipped is not checked to be UTF-8


def _call(block: messages.Said) -> dict[str, Any]:
    arguments = _text(block.input) or "{}"
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _reason(reason: str | None, object_alone: object) -> str | None:
    """The object ended the turn, not a call."""
    return "end_turn" if object_alone and reason == "tool_use" else reason


def _finish(reason: str | None, sequence: str | None) -> dict[str, Any]:
    """The stop sequence goes where vLLM tells it."""
    return {"finish_reason": _FINISH.get(reason or "", "stop"), "stop_reason": sequence}


def _usage(usage: messages.Usage) -> dict[str, Any]:
    """OpenAI counts tokens from a cache within the prompt's, Anthropic apart."""
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    prompt, completion = (usage.input_tokens or 0) + read + written, usage.output_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
    }


class MessagesAsChat(EventStream):
    """Each event becomes a chunk, or nothing."""

    def __init__(self, *, tells_usage: bool, wants_object: bool = False) -> None:
        super().__init__()
        self._tells_usage, self._wants_object = tells_usage, wants_object
        self._object: int | None = None  # the block that is the JSON object
        self._said_some = False  # of it
        self._beside: list[str] = []  # text, which is told where no object comes
        self._head: dict[str, Any] = {}
        self._usage = messages.Usage()
        self._calls: dict[int, int] = {}  # block -> call
        self._stopped: messages.Delta | None = None

    def take(self, event: sse.Event, out: list[bytes]) -> None:
        """See EventStream."""
        found = messages.event.decode(event.data)
        usage = found.usage if found.message is None else found.message.usage
        if usage is not None:
            self._count(usage)
        if found.type == "error" or found.error is not None:
            fault = found.error or messages.Fault()
            self.fail(Refused(_STATUS.get(fault.type, 500), "back_end_error", fault.message), out)
        elif found.type == "ping":
            out.append(sse.comment(b"ping"))
        elif found.type == "message_start" and found.message is not None:
            self._head = {
                "id": found.message.id, "object": "chat.completion.chunk", "created": int(time.time()),
                "model": found.message.model,
            }  # fmt: skip
            out.append(self._chunk({"role": "assistant", "content": ""}))
        elif found.type == "message_delta" and found.delta is not None:
            self._stopped = found.delta
        elif found.type == "message_stop":
            self.close(out)
            self._over = True
        else:
            self._block(found, out)

    def _count(self, usage: messages.Usage) -> None:
        """A later count takes the place of an earlier one, field by field."""
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)

    def _block(self, found: messages.StreamEvent, out: list[bytes]) -> None:
        begun, delta = found.content_block, found.delta
        if begun is not None and begun.type == "tool_use" and self._wants_object and begun.name == OBJECT:
            self._object = found.index if self._object is None else self._object
            self._say("" if bytes(begun.input) in (b"", b"{}", b"null") else _text(begun.input), out)
        elif delta is not None and delta.partial_json and found.index == self._object:
            self._say(delta.partial_json, out)
        elif begun is not None and begun.type == "tool_use":
            self._calls[found.index] = len(self._calls)
            function = {"name": begun.name, "arguments": ""}
            out.append(self._call(found.index, {"id": begun.id, "type": "function", "function": function}))
            if bytes(begun.input) not in (b"", b"{}", b"null"):
                out.append(self._call(found.index, {"function": {"arguments": _text(begun.input)}}))
        elif delta is not None and delta.partial_json and found.index in self._calls:
            out.append(self._call(found.index, {"function": {"arguments": delta.partial_json}}))
        else:
            text = begun or delta
            if text is not None and text.text and self._wants_object:
                self._beside.append(text.text)
            elif text is not None and text.text:
                out.append(self._chunk({"content": text.text}))
            elif text is not None and text.thinking:
                out.append(self._chunk(both_reasonings(text.thinking)))

    def _say(self, text: str, out: list[bytes]) -> None:
        """A piece of the object."""
        if text:
            self._said_some = True
            out.append(self._chunk({"content": text}))

    def _call(self, index: int, call: dict[str, Any]) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls[index], **call}]})

    def _chunk(self, delta: dict[str, Any], **finish: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **finish}
        return sse.data(_encode({**self._head, "choices": [choice]}))

    def close(self, out: list[bytes]) -> None:
        """See EventStream."""
        if self._stopped is None or self._stopped.stop_reason is None:
            self.fail(CUT, out)
            return
        if not self._said_some:
            self._say("".join(self._beside) if self._object is None else "{}", out)
        reason = _reason(self._stopped.stop_reason, self._object is not None and not self._calls)
        out.append(self._chunk({}, **_finish(reason, self._stopped.stop_sequence)))
        if self._tells_usage:
            out.append(sse.data(_encode({**self._head, "choices": [], "usage": _usage(self._usage)})))
        out.append(sse.data(b"[DONE]"))

    def failed(self, refused: Refused, out: list[bytes]) -> None:
        """See EventStream."""
        out.append(errors.event(b"/chat/completions", refused))
