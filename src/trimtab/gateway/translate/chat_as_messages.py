"""Answers of a back end that speaks OpenAI chat completions, whole and streamed, as Anthropic messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.request import Refused
from trimtab.gateway.translate import chat, sse
from trimtab.gateway.translate.chat_stream import ChatStream
from trimtab.gateway.translate.translation import CUT, new_id, object_of

_encode = msgspec.json.Encoder().encode


def message(answer: chat.Answer) -> dict[str, Any]:
    """A whole answer. Refused 502 if it holds none."""
    choice = answer.first
    said = choice.message
    if said is None:
        raise Refused(502, "back_end_failed", "the back end's answer holds no message")
    calls = [_tool_use(call) for call in said.tool_calls or []]
    blocks = [_thinking(said)] if said.thought else []
    blocks += [{"type": "text", "text": text} for text in (said.content, said.refusal) if text]
    blocks += calls
    used = any(block["type"] == "tool_use" for block in calls)
    reason, sequence = stop_reason(choice, called=used, complete=used)
    return {
        "id": answer.id or new_id("msg_"), "type": "message", "role": "assistant", "model": answer.model or "",
        "content": blocks or [{"type": "text", "text": ""}],
        "stop_reason": "refusal" if said.refusal else reason, "stop_sequence": sequence, "usage": usage(answer.usage),
    }  # fmt: skip


def _thinking(said: chat.Said) -> dict[str, Any]:
    """The signature tells the field that the reasoning came in, so that it goes back in the same."""
    return {"type": "thinking", "thinking": said.thought, "signature": _signature(said)}


def _signature(said: chat.Said) -> str:
    return "reasoning" if said.reasoning else "reasoning_content"


def _tool_use(call: chat.ToolCall) -> dict[str, Any]:
    """A call; as text when its arguments are no JSON object (cut short, or wrongly made): it must not be run."""
    function = call.function or chat.CalledFunction()
    arguments = object_of(function.arguments or "{}")
    if arguments is None:
        return {"type": "text", "text": function.arguments or ""}
    return {"type": "tool_use", "id": call.id or new_id("call_"), "name": function.name or "", "input": arguments}


def stop_reason(choice: chat.Choice, *, called: bool, complete: bool) -> tuple[str, str | None]:
    """Anthropic's stop_reason and stop_sequence, as vLLM maps them: a stop string that cut a call short wins."""
    finish = choice.finish_reason or "stop"
    if finish in ("length", "content_filter"):
        return ("max_tokens" if finish == "length" else "refusal"), None
    if finish not in ("stop", "tool_calls", "function_call"):
        return "end_turn", None
    if complete:
        return "tool_use", None
    if isinstance(choice.stop_reason, str):
        return "stop_sequence", choice.stop_reason
    return ("tool_use" if called or finish != "stop" else "end_turn"), None


def usage(tokens: chat.Tokens | None) -> dict[str, Any]:
    """Anthropic counts tokens from a cache apart, OpenAI within the prompt's."""
    if tokens is None:
        return {"input_tokens": 0, "output_tokens": 0}
    found: dict[str, Any] = {"output_tokens": tokens.completion}
    if tokens.cached is not None:
        found["cache_read_input_tokens"] = tokens.cached
    if tokens.written is not None:
        found["cache_creation_input_tokens"] = tokens.written
    found["input_tokens"] = max(0, tokens.prompt - (tokens.cached or 0) - (tokens.written or 0))
    return found


class _Piece(NamedTuple):
    """Of the block `key`: kind and, of calls, which; `call` begins it."""

    key: tuple[str, int]
    text: str
    call: tuple[str, str] | None = None  # id and name


class ChatAsMessages(ChatStream):
    """Blocks one after the other: a piece for another block waits until the arguments of the open call are whole."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = False
        self._index = -1  # of the open block
        self._open: tuple[str, int] | None = None
        self._arguments: list[str] = []  # of the open or last call
        self._waiting: list[_Piece] = []
        self._ids: dict[int, str] = {}  # of the calls by the back end's index
        self._number: dict[int, int] = {}  # of the calls in their order, by the same
        self._calls = 0
        self._signed = ""
        self._called = self._refused = False
        self._last = chat.Choice()

    def chunk(self, found: chat.Answer, out: list[bytes]) -> None:
        """See ChatStream."""
        self._begin(found, out)
        self._take(found.first, out)

    def _begin(self, found: chat.Answer, out: list[bytes]) -> None:
        if self._begun:
            return
        self._begun = True
        begun: dict[str, Any] = {
            "id": found.id or new_id("msg_"), "type": "message", "role": "assistant", "content": [],
            "model": found.model or "", "stop_reason": None, "stop_sequence": None, "usage": usage(self._tokens),
        }  # fmt: skip
        out.append(_event("message_start", message=begun))

    def _take(self, choice: chat.Choice, out: list[bytes]) -> None:
        if choice.finish_reason:  # some servers say "" until the last piece
            self._last = choice
        said = choice.delta
        if said is None:
            return
        if said.thought:
            self._signed = _signature(said)
            self._piece(_Piece(("thinking", 0), said.thought), out)
        if said.content:
            self._piece(_Piece(("text", 0), said.content), out)
        if said.refusal:
            self._refused = True
            self._piece(_Piece(("text", 0), said.refusal), out)
        for at, call in enumerate(said.tool_calls or []):
            self._call(call, call.index if call.index is not None else at, out)

    def _call(self, call: chat.ToolCall, index: int, out: list[bytes]) -> None:
        function = call.function or chat.CalledFunction()
        known = self._ids.get(index)
        begins = None
        if known is None or (call.id and function.name and call.id != known):
            begins = (call.id or new_id("call_"), function.name or "")
            self._ids[index] = begins[0]
            self._calls += 1
            self._number[index] = self._calls
        key = ("tool_use", self._number[index])
        if begins is not None or function.arguments:
            self._piece(_Piece(key, function.arguments or "", begins), out)

    def _piece(self, piece: _Piece, out: list[bytes]) -> None:
        if piece.key != self._open:
            if self._open is not None and self._open[0] == "tool_use" and not self._whole():
                self._waiting.append(piece)
                return
            self._next(piece, out)
        self._add(piece, out)
        if self._waiting and self._whole():
            self._replay(out)

    def _replay(self, out: list[bytes]) -> None:
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            self._piece(piece, out)

    def _whole(self) -> bool:
        return object_of("".join(self._arguments)) is not None

    def _next(self, piece: _Piece, out: list[bytes]) -> None:
        self._stop(out)
        self._open = piece.key
        self._index += 1
        kind = piece.key[0]
        block: dict[str, Any] = {"type": kind}
        if kind == "tool_use":
            self._called, self._arguments = True, []
            id, name = piece.call or ("", "")
            block.update(id=id, name=name, input={})
        else:
            block[kind] = ""
            if kind == "thinking":
                block["signature"] = ""
        out.append(_event("content_block_start", index=self._index, content_block=block))

    def _add(self, piece: _Piece, out: list[bytes]) -> None:
        kind = piece.key[0]
        if not piece.text:
            return
        if kind == "tool_use":
            self._arguments.append(piece.text)
            delta = {"type": "input_json_delta", "partial_json": piece.text}
        else:
            delta = {"type": f"{kind}_delta", kind: piece.text}
        out.append(_event("content_block_delta", index=self._index, delta=delta))

    def _stop(self, out: list[bytes]) -> None:
        if self._open is None:
            return
        if self._open[0] == "thinking":
            delta = {"type": "signature_delta", "signature": self._signed}
            out.append(_event("content_block_delta", index=self._index, delta=delta))
        out.append(_event("content_block_stop", index=self._index))
        self._open = None

    def close(self, out: list[bytes]) -> None:
        """See EventStream."""
        if self._last.finish_reason is None and not (self._ended and self._begun):
            self.fail(CUT, out)
            return
        while self._waiting:  # calls that never became whole, each with all of its pieces
            key = self._waiting[0].key
            same = [piece for piece in self._waiting if piece.key == key]
            self._waiting = [piece for piece in self._waiting if piece.key != key]
            self._next(same[0], out)
            for piece in same:
                self._add(piece, out)
        self._stop(out)
        complete = self._called and self._whole()
        reason, sequence = stop_reason(self._last, called=self._called, complete=complete)
        delta = {"stop_reason": "refusal" if self._refused else reason, "stop_sequence": sequence}
        out.append(_event("message_delta", delta=delta, usage=usage(self._tokens)))
        out.append(_event("message_stop"))

    def failed(self, refused: Refused, out: list[bytes]) -> None:
        """See EventStream."""
        self._stop(out)
        out.append(errors.event(b"/messages", refused))


def _event(name: str, **fields: Any) -> bytes:
    return sse.event(name, _encode({"type": name, **fields}))
