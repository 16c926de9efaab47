"""Answers of a back end that speaks OpenAI chat completions, whole and streamed, as OpenAI responses."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import chat, sse
from trimtab.gateway.translate.chat_stream import ChatStream
from trimtab.gateway.translate.translation import CUT, Fields, new_id, object_of

_encode = msgspec.json.Encoder().encode
_ECHOED: dict[str, Any] = {
    "instructions": None, "metadata": None, "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto",
    "tools": [], "top_p": None, "max_output_tokens": None, "max_tool_calls": None, "reasoning": None, "text": None,
    "truncation": "disabled", "user": None, "service_tier": None,
}  # fmt: skip


class Called(NamedTuple):
    """A tool of the caller's."""

    name: str
    namespace: str | None
    custom: bool

    @property
    def flat(self) -> str:
        """Its name for chat, which has no namespaces."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


class Echo(NamedTuple):
    """What an answer tells of its request: the fields, and who the tools' names are."""

    fields: Fields
    names: dict[str, Called]

    def called(self, flat: str) -> Called:
        """Who a tool's name is."""
        return self.names.get(flat) or Called(flat, None, False)


def response(answer: chat.Answer, echo: Echo) -> dict[str, Any]:
    """A whole answer. Refused 502 if it holds none."""
    choice = answer.first
    said = choice.message
    if said is None:
        raise Refused(502, "back_end_failed", "the back end's answer holds no message")
    status, incomplete = _status(choice.finish_reason)
    output: list[dict[str, Any]] = []
    if said.thought:
        output.append(_reasoning(new_id("rs_" if said.reasoning else "rsc_"), said.thought))
    if said.content or said.refusal:
        output.append(_message(new_id("msg_"), said.content or "", said.refusal, status))
    for call in said.tool_calls or []:
        function = call.function or chat.CalledFunction()
        called = echo.called(function.name or "")
        output.append(_call("", call.id or new_id("call_"), called, function.arguments or "", status))
    return _response(echo, answer, new_id("resp_"), status, incomplete, output, answer.usage)


def _status(finish: str | None) -> tuple[str, str | None]:
    """A response's status, and why it is incomplete."""
    if finish == "length":
        return "incomplete", "max_output_tokens"
    if finish == "content_filter":
        return "incomplete", "content_filter"
    return "completed", None


def _response(
    echo: Echo, answer: chat.Answer, id: str, status: str, incomplete: str | None, output: list[dict[str, Any]],
    tokens: chat.Tokens | None,
) -> dict[str, Any]:  # fmt: skip
    echoed = {name: echo.fields.get(name, default) for name, default in _ECHOED.items()}
    return {
        "id": id, "object": "response", "created_at": int(answer.created or time.time()), "status": status,
        "error": None, "incomplete_details": {"reason": incomplete} if incomplete else None,
        "model": answer.model or "", "output": output,
        "previous_response_id": None, "background": False, "store": False, **echoed,
        "usage": _usage(tokens) if tokens is not None else None,
    }  # fmt: skip


def _usage(tokens: chat.Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached or 0, "cache_write_tokens": tokens.written or 0},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning or 0},
        "total_tokens": tokens.prompt + tokens.completion,
    }


# items


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _reasoning(id: str, text: str, status: str = "completed") -> dict[str, Any]:
    """The id tells the field that the reasoning came in, so that it goes back in the same."""
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {"type": "reasoning", "id": id, "summary": [], "content": content, "status": status}


def _message(id: str, text: str, refusal: str | None, status: str) -> dict[str, Any]:
    content = [_text(text)] if text else []
    content += [{"type": "refusal", "refusal": refusal}] if refusal else []
    return {"type": "message", "id": id, "role": "assistant", "status": status, "content": content}


def _call(id: str, call_id: str, called: Called, arguments: str, status: str) -> dict[str, Any]:
    if called.custom:
        input = _input(arguments) if arguments else ""
        id = id or new_id("ctc_")
        return {"type": "custom_tool_call", "id": id, "call_id": call_id, "name": called.name, "input": input}
    found = {"type": "function_call", "id": id or new_id("fc_"), "call_id": call_id, "name": called.name}
    if called.namespace is not None:
        found["namespace"] = called.namespace
    return {**found, "arguments": arguments, "status": status}


class _Input(msgspec.Struct):
    input: str


def _input(arguments: str) -> str:
    """The text that a custom tool is called with; what is no such call is the text itself."""
    try:
        return msgspec.json.decode(arguments, type=_Input).input
    except (msgspec.DecodeError, RecursionError):
        return arguments


class _Open:
    """An item of output that is being streamed."""

    def __init__(self, index: int, id: str, call_id: str = "", called: Called | None = None) -> None:
        self.index, self.id, self.call_id, self.called = index, id, call_id, called
        self.pieces: list[str] = []
        self.done = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ChatAsResponses(ChatStream):
    """Items of output; calls whose arguments come by turns are open side by side."""

    def __init__(self, echo: Echo) -> None:
        super().__init__()
        self._echo = echo
        self._id = new_id("resp_")
        self._begun: chat.Answer | None = None
        self._sequence = 0
        self._items: list[_Open] = []
        self._now: _Open | None = None  # to which pieces of text or reasoning are added
        self._calls: dict[int, _Open] = {}
        self._finish: str | None = None

    def chunk(self, found: chat.Answer, out: list[bytes]) -> None:
        """See ChatStream."""
        if self._begun is None:
            self._begun = found
            begun = _response(self._echo, found, self._id, "in_progress", None, [], None)
            out += [self._event(f"response.{name}", response=begun) for name in ("created", "in_progress")]
        self._take(found.first, out)

    def _take(self, choice: chat.Choice, out: list[bytes]) -> None:
        self._finish = choice.finish_reason or self._finish
        said = choice.delta
        if said is None:
            return
        if said.thought:
            self._add("rs_" if said.reasoning else "rsc_", said.thought, out)
        if said.content:
            self._add("msg_", said.content, out)
        if said.refusal:
            self._add("ref_", said.refusal, out)
        for at, call in enumerate(said.tool_calls or []):
            self._call(call, call.index if call.index is not None else at, out)

    def _event(self, kind: str, **fields: Any) -> bytes:
        told = sse.event(kind, _encode({"type": kind, "sequence_number": self._sequence, **fields}))
        self._sequence += 1
        return told

    def _about(self, item: _Open) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": item.index}

    def _open(self, item: _Open, out: list[bytes]) -> None:
        self._items.append(item)
        added = self._item(item, "in_progress")
        out.append(self._event("response.output_item.added", output_index=item.index, item=added))

    def _add(self, prefix: str, text: str, out: list[bytes]) -> None:
        """A piece of reasoning, text or refusal."""
        item = self._now
        if item is None or not item.id.startswith(prefix):
            self._end_all(out, whole_calls_only=True)
            item = self._now = _Open(len(self._items), new_id(prefix))
            self._open(item, out)
            part = _part(item, "")
            out.append(self._event("response.content_part.added", **self._about(item), content_index=0, part=part))
        item.pieces.append(text)
        more: dict[str, Any] = {"logprobs": []} if prefix == "msg_" else {}
        about = self._about(item)
        out.append(self._event(f"response.{_kind(item)}.delta", **about, content_index=0, delta=text, **more))

    def _call(self, call: chat.ToolCall, index: int, out: list[bytes]) -> None:
        function = call.function or chat.CalledFunction()
        item = self._calls.get(index)
        if item is None or (call.id and function.name and call.id != item.call_id):
            self._end_all(out, whole_calls_only=True)
            called = self._echo.called(function.name or "")
            id = new_id("ctc_" if called.custom else "fc_")
            item = self._calls[index] = _Open(len(self._items), id, call.id or new_id("call_"), called)
            self._open(item, out)
        if function.arguments and not item.done:
            item.pieces.append(function.arguments)
            if item.called is not None and not item.called.custom:  # a custom tool's text is told when it is whole
                about = self._about(item)
                out.append(self._event("response.function_call_arguments.delta", **about, delta=function.arguments))

    def _end_all(self, out: list[bytes], *, whole_calls_only: bool = False, status: str = "completed") -> None:
        for item in self._items:
            if not item.done and not (whole_calls_only and item.called and object_of(item.text) is None):
                self._end(item, out, status if item is self._items[-1] else "completed")
        self._now = None

    def _end(self, item: _Open, out: list[bytes], status: str) -> None:
        item.done = True
        text, about = item.text, self._about(item)
        if item.called is None:
            kind = _kind(item)
            more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
            whole = {"refusal" if kind == "refusal" else "text": text}
            out.append(self._event(f"response.{kind}.done", **about, content_index=0, **whole, **more))
            part = _part(item, text)
            out.append(self._event("response.content_part.done", **about, content_index=0, part=part))
        elif item.called.custom:
            text = _input(text)
            out.append(self._event("response.custom_tool_call_input.delta", **about, delta=text))
            out.append(self._event("response.custom_tool_call_input.done", **about, input=text))
        else:
            name = item.called.name
            out.append(self._event("response.function_call_arguments.done", **about, name=name, arguments=text))
        done = self._item(item, status)
        out.append(self._event("response.output_item.done", output_index=item.index, item=done))

    def _item(self, item: _Open, status: str) -> dict[str, Any]:
        text = item.text
        if item.called is not None:
            return _call(item.id, item.call_id, item.called, text, status)
        if _kind(item) == "reasoning_text":
            return _reasoning(item.id, text, status)
        refused = _kind(item) == "refusal"
        return _message(item.id, "" if refused else text, text if refused else None, status)

    def close(self, out: list[bytes]) -> None:
        """See EventStream."""
        if self._begun is None or not (self._finish or self._ended):
            self.fail(CUT, out)
            return
        status, incomplete = _status(self._finish)
        self._end_all(out, status=status)
        output = [self._item(item, status if item is self._items[-1] else "completed") for item in self._items]
        last = _response(self._echo, self._begun, self._id, status, incomplete, output, self._tokens)
        out.append(self._event(f"response.{status}", response=last))

    def failed(self, refused: Refused, out: list[bytes]) -> None:
        """See EventStream."""
        out.append(errors.event(b"/responses", refused, number=self._sequence))


def _kind(item: _Open) -> str:
    """How its events are named."""
    return {"msg": "output_text", "ref": "refusal"}.get(item.id[:3], "reasoning_text")


def _part(item: _Open, text: str) -> dict[str, Any]:
    kind = _kind(item)
    if kind == "output_text":
        return _text(text)
    return {"type": kind, "refusal" if kind == "refusal" else "text": text}
