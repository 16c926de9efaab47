"""Answers of a back end that speaks OpenAI responses, whole and streamed, as chat completions."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import responses, sse
from trimtab.gateway.translate.translation import CUT, EventStream, both_reasonings

_encode = msgspec.json.Encoder().encode
_TEXT = "response.output_text.delta"
_REFUSAL = "response.refusal.delta"
_REASONING = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta"})
_ARGUMENTS = "response.function_call_arguments.delta"
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def completion(answer: responses.Answer) -> dict[str, Any]:
    """A whole answer. Refused 502 if it failed."""
    if answer.status not in ("completed", "incomplete"):
        raise _fault(answer)
    said: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    calls: list[dict[str, Any]] = []
    thought = ""
    for item in answer.output:
        if item.type == "function_call":
            function = {"name": item.name or "", "arguments": item.arguments or ""}
            calls.append({"id": item.call_id or item.id or "", "type": "function", "function": function})
        for part in item.content if isinstance(item.content, list) else []:
            if item.type == "message" and part.text is not None:
                said["content"] = (said["content"] or "") + part.text
            elif item.type == "message" and part.refusal is not None:
                said["refusal"] = (said["refusal"] or "") + part.refusal
            elif item.type == "reasoning":
                thought += part.text or ""
        if item.type == "reasoning" and not item.content:
            thought += "".join(part.text or "" for part in item.summary or [])
    said.update(both_reasonings(thought) if thought else {})
    if calls:
        said["tool_calls"] = calls
    elif said["content"] is None and said["refusal"] is None:
        said["content"] = ""
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": _finish(answer, bool(calls))}
    return {
        "id": answer.id, "object": "chat.completion", "created": int(answer.created_at) or int(time.time()),
        "model": answer.model, "choices": [choice], "usage": _usage(answer.usage or responses.Usage()),
    }  # fmt: skip


def _fault(answer: responses.Answer) -> Refused:
    told = answer.error.message if answer.error is not None else f"the answer's status is {answer.status}"
    return Refused(502, (answer.error.code if answer.error is not None else None) or "back_end_failed", told)


def _finish(answer: responses.Answer, called: bool) -> str:
    if answer.status == "incomplete":
        reason = answer.incomplete_details.reason if answer.incomplete_details is not None else None
        return "content_filter" if reason == "content_filter" else "length"
    return "tool_calls" if called else "stop"


def _usage(usage: responses.Usage) -> dict[str, Any]:
    read, made = usage.input_tokens_details, usage.output_tokens_details
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": (read.cached_tokens if read else None) or 0},
        "completion_tokens_details": {"reasoning_tokens": (made.reasoning_tokens if made else None) or 0},
    }


class ResponsesAsChat(EventStream):
    """Each event that carries something new becomes a chunk."""

    def __init__(self, *, tells_usage: bool) -> None:
        super().__init__()
        self._tells_usage = tells_usage
        self._head: dict[str, Any] = {}
        self._calls: dict[int, int] = {}  # item of output -> call

    def take(self, event: sse.Event, out: list[bytes]) -> None:
        """See EventStream."""
        if event.data == b"[DONE]":  # not of the protocol, but some servers end any stream so
            return
        found = responses.event.decode(event.data)
        kind, item = found.type, found.item
        if found.response is not None and not self._head:
            self._begin(found.response, out)
        if kind == _TEXT:
            out.append(self._chunk({"content": found.delta}))
        elif kind in _REASONING:
            out.append(self._chunk(both_reasonings(found.delta)))
        elif kind == _ARGUMENTS and found.output_index in self._calls:
            out.append(self._call(found.output_index, {"function": {"arguments": found.delta}}))
        elif kind == _REFUSAL:
            out.append(self._chunk({"refusal": found.delta}))
        elif kind == "response.output_item.added" and item is not None and item.type == "function_call":
            self._calls[found.output_index] = len(self._calls)
            function = {"name": item.name or "", "arguments": item.arguments or ""}
            call = {"id": item.call_id or item.id or "", "type": "function", "function": function}
            out.append(self._call(found.output_index, call))
        elif kind in _LAST and found.response is not None:
            self._end(found.response, out)
        elif kind == "error":
            self.fail(Refused(502, str(found.code or "back_end_failed"), found.message or "the back end failed"), out)

    def _begin(self, answer: responses.Answer, out: list[bytes]) -> None:
        self._head = {
            "id": answer.id, "object": "chat.completion.chunk", "model": answer.model,
            "created": int(answer.created_at) or int(time.time()),
        }  # fmt: skip
        out.append(self._chunk({"role": "assistant", "content": ""}))

    def _end(self, answer: responses.Answer, out: list[bytes]) -> None:
        if answer.status not in ("completed", "incomplete"):
            self.fail(_fault(answer), out)
            return
        out.append(self._chunk({}, finish_reason=_finish(answer, bool(self._calls))))
        if self._tells_usage:
            usage = _usage(answer.usage or responses.Usage())
            out.append(sse.data(_encode({**self._head, "choices": [], "usage": usage})))
        out.append(sse.data(b"[DONE]"))
        self._over = True

    def _call(self, index: int, call: dict[str, Any]) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls[index], **call}]})

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return sse.data(_encode({**self._head, "choices": [choice]}))

    def close(self, out: list[bytes]) -> None:
        """See EventStream."""
        self.fail(CUT, out)

    def failed(self, refused: Refused, out: list[bytes]) -> None:
        """See EventStream."""
        out.append(errors.event(b"/chat/completions", refused))
