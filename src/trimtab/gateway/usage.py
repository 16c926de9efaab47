"""What a request used, read off the answer as it passes: of a body, or of the events of a stream; in any protocol."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

KEPT = 256 << 10  # bytes of a body that are kept to be read; of a longer one only its end is
END = 4096  # where servers put the usage
MAX_EVENT = 8 << 20  # a longer event of a stream is passed on unread
_MARK, _COLON = b'"usage"', 58
_BLANK = re.compile(rb"(?>\r\n|\r|\n){2}")


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one request by the back end's own count; `prompt` holds those that came from a cache, `cached`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


NOTHING = Usage()


class Record(msgspec.Struct):
    """One answered request, for the ledger."""

    key: str
    model: str  # that was asked for
    back_end: str
    path: str  # without /v1
    status: int  # 499: the client left; in a stream that broke, what it would have been
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    first_byte_s: float
    counted: bool  # whether the back end told the tokens; else they are estimated
    id: str = ""  # of the request, as back end and client were told it
    peer: str = ""
    trace: str = ""  # the client's traceparent
    answered_by: str = ""  # the model that a fall-back led to, by whose price it is paid


Names = tuple[tuple[bytes, bytes], ...]
Ledger = Callable[[Record], None]


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Words(msgspec.Struct):
    """Usage in the words of OpenAI's chat, OpenAI's responses, Anthropic's messages, DeepSeek's cache."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None

    def usage(self) -> Usage:
        if self.prompt_tokens is not None:
            details = self.prompt_tokens_details
            cached = (details.cached_tokens if details is not None else None) or self.prompt_cache_hit_tokens
            return Usage(self.prompt_tokens, self.completion_tokens or 0, cached or 0)
        if self.input_tokens is not None or self.output_tokens is not None:
            read = self.cache_read_input_tokens or 0
            besides = read + (self.cache_creation_input_tokens or 0)  # Anthropic counts them beside input_tokens
            details = self.input_tokens_details
            cached = read or (details.cached_tokens if details is not None else None) or 0
            return Usage((self.input_tokens or 0) + besides, self.output_tokens or 0, cached)
        return Usage(self.total_tokens or 0)


class _Answer(msgspec.Struct):
    usage: _Words | None = None
    choices: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()  # message_start of Anthropic's streams
    response: msgspec.Raw = msgspec.Raw()  # response.completed of OpenAI's responses


class _Within(msgspec.Struct):
    usage: _Words | None = None


_answer = msgspec.json.Decoder(_Answer)
_within = msgspec.json.Decoder(_Within)
_words = msgspec.json.Decoder(_Words)


class BodyUsage:
    """Of a body that is not streamed."""

    __slots__ = ("_kept", "_size", "whole")

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = 0
        self.whole = False

    def pass_on(self, piece: bytes) -> bytes:
        """The piece, unchanged."""
        self._size += len(piece)
        self._kept.append(piece)
        if self._size > KEPT:
            self._kept = [b"".join(self._kept)[-END:]]
        return piece

    def rest(self) -> bytes:
        """What was held back: nothing."""
        return b""

    def usage(self) -> Usage | None:
        """The usage, if the body holds one."""
        kept = self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)
        if self._size <= KEPT:
            return of_body(kept) if _MARK in kept or b"_tokens" in kept else None
        at = kept.rfind(_MARK)
        start = kept.find(b"{", at) if at >= 0 else -1
        end = _closing(kept, start) if start >= 0 else -1
        try:
            return _words.decode(kept[start:end]).usage() if end > 0 else None
        except (msgspec.DecodeError, RecursionError):
            return None


class StreamUsage:
    """Of an event stream: whole events pass at once; `hide`: the event that only tells the usage is kept back.

    `names`: what is put in the place of what, in each event; the name of the model, in its spellings.
    """

    __slots__ = ("_delta", "_found", "_hide", "_names", "_pending", "_searched", "deltas", "last", "whole")

    def __init__(self, *, hide: bool, delta: bytes = b'"delta":', names: Names = ()) -> None:
        self._names = names
        self._pending = bytearray()
        self._searched = 0  # bytes of it that hold no end of an event
        self._hide = hide
        self._delta = delta
        self._found: Usage | None = None
        self.last = b""  # what passed last, which tells the number of a response's latest event
        self.deltas = 0  # events with a piece of the answer so far: about as many as tokens
        self.whole = False

    def pass_on(self, piece: bytes) -> bytes:
        """What of the stream may go to the client now: whole events, and nothing of one that may have to be hidden."""
        if not self._pending and piece.endswith(b"\n\n") and piece.find(_MARK) < 0:  # twice as fast as `in`
            self.deltas += piece.count(self._delta)  # the usual: one or more whole events without a word of usage
            if piece[0] != _COLON:  # a comment
                self.last = piece
        else:
            piece = self._pass_on(piece)
        for there, here in self._names:
            piece = piece.replace(there, here)
        return piece

    def _pass_on(self, piece: bytes) -> bytes:
        pending = self._pending
        pending += piece
        end = _end_of_events(pending, max(0, self._searched - 3))
        if end == 0 and len(pending) <= MAX_EVENT:
            self._searched = len(pending)
            return b""
        whole = bytes(pending[:end] if end else pending)
        del pending[: len(whole)]
        self._searched = len(pending)
        self.deltas += whole.count(self._delta)
        self.last = whole
        return whole if _MARK not in whole else self._without_usage(whole)

    def rest(self) -> bytes:
        """What the stream ended with, though no empty line follows it."""
        rest = bytes(self._pending)
        self._pending.clear()
        rest = rest if _MARK not in rest else self._without_usage(rest)
        for there, here in self._names:
            rest = rest.replace(there, here)
        return rest

    def usage(self) -> Usage | None:
        """The usage that the stream told so far, each count at its highest: Anthropic tells it in two parts."""
        return self._found

    def _without_usage(self, events: bytes) -> bytes:
        kept: list[bytes] = []
        for event in _events(events):
            told = _decoded(_data(event)) if _MARK in event else None
            if told is not None:
                usage, alone = told
                was = self._found or Usage()
                self._found = Usage(
                    max(was.prompt, usage.prompt), max(was.completion, usage.completion), max(was.cached, usage.cached)
                )
                if self._hide and alone:
                    continue
            kept.append(event)
        return b"".join(kept)


def _end_of_events(data: bytearray, start: int) -> int:
    """Where the last whole event ends; 0 when there is none."""
    if b"\r" not in data:
        return data.rfind(b"\n\n", start) + 2 if data.find(b"\n\n", start) >= 0 else 0
    end = 0
    for found in _BLANK.finditer(data, start):
        if found.end() == len(data) and data[-1:] == b"\r" and b"\n" in found[0]:
            break  # the first half of a line's end, by what the stream's other lines end in
        end = found.end()
    return end


def _events(data: bytes) -> list[bytes]:
    """Events with their empty lines."""
    events, start = [], 0
    for found in _BLANK.finditer(data):
        events.append(data[start : found.end()])
        start = found.end()
    return events + ([data[start:]] if start < len(data) else [])


def _data(event: bytes) -> bytes:
    return b"".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))


def _decoded(data: bytes) -> tuple[Usage, bool] | None:
    """The usage of an answer or an event, and whether it tells nothing else."""
    try:
        told = _answer.decode(data)
        if told.usage is not None:
            choices = bytes(told.choices)
            return told.usage.usage(), choices != b"" and choices.strip(b"[] \t\r\n") == b""
        within = bytes(told.message) or bytes(told.response)
        inner = _within.decode(within) if within[:1] == b"{" else None
        return (inner.usage.usage(), False) if inner is not None and inner.usage is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def of_body(body: bytes) -> Usage | None:
    """The usage of a whole answer."""
    try:
        told = _within.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return told.usage.usage() if told.usage is not None else None


def _closing(text: bytes, start: int) -> int:
    """Where the object that starts at `start` ends; -1 when it does not."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == 0x7B:
            depth += 1
        elif text[at] == 0x7D:
            depth -= 1
            if depth == 0:
                return at + 1
    return -1
