"""What a request used, read off the answer as it passes: the last of a body, or the usage event of a stream."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

KEPT = 4096  # bytes of a body's end, where servers put the usage
MAX_EVENT = 4 << 20  # a longer event of a stream is passed on unread
_MARK = b'"usage"'


class Details(msgspec.Struct):
    """Prompt tokens that came from a cache."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """Tokens of one request, by the back end's own count."""

    prompt_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None


class _Answer(msgspec.Struct):
    usage: Usage | None = None
    choices: list[msgspec.Raw] | None = None


class Record(msgspec.Struct):
    """One answered request, for the ledger."""

    key: str
    model: str
    back_end: str
    path: str
    status: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    first_byte_s: float
    counted: bool  # whether the back end told the tokens


Ledger = Callable[[Record], None]

_usage = msgspec.json.Decoder(Usage)
_answer = msgspec.json.Decoder(_Answer)


class BodyUsage:
    """Of a body that is not streamed: keeps its end only."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = b""

    def pass_on(self, piece: bytes) -> bytes:
        """The piece, unchanged."""
        self._end = piece[-KEPT:] if len(piece) >= KEPT or not self._end else (self._end + piece)[-KEPT:]
        return piece

    def rest(self) -> bytes:
        """What was held back: nothing."""
        return b""

    def usage(self) -> Usage | None:
        """The usage, if the end of the body holds one."""
        if self._end[:1] == b"{":  # the whole body, as it is short
            told = _told(b"data:" + self._end)
            return told.usage if told is not None else None
        at = self._end.rfind(_MARK)
        start = self._end.find(b"{", at) if at >= 0 else -1
        end = _closing(self._end, start) if start >= 0 else -1
        return _decoded(self._end[start:end]) if end > 0 else None


class StreamUsage:
    """Of an event stream: whole events pass at once; `hide`: the event that only tells the usage is kept back."""

    __slots__ = ("_found", "_hide", "_pending")

    def __init__(self, *, hide: bool) -> None:
        self._pending = b""
        self._hide = hide
        self._found: Usage | None = None

    def pass_on(self, piece: bytes) -> bytes:
        """What of the stream may go to the client now: whole events, and nothing of one that may have to be hidden."""
        if self._pending:
            piece = self._pending + piece
            self._pending = b""
        elif _MARK not in piece and piece.endswith(b"\n\n"):
            return piece  # the usual: one or more whole events without a word of usage
        end = max(piece.rfind(b"\n\n") + 2, piece.rfind(b"\r\n\r\n") + 4 if b"\r" in piece else 0)
        if end < 2 or (end == 1):
            end = 0
        if end < len(piece):
            self._pending = piece[end:]
            if len(self._pending) > MAX_EVENT:
                end, self._pending = len(piece), b""
        whole = piece[:end]
        return whole if _MARK not in whole else self._without_usage(whole)

    def rest(self) -> bytes:
        """What the stream ended with, though it is no whole event."""
        rest, self._pending = self._pending, b""
        return rest

    def usage(self) -> Usage | None:
        """The last usage that the stream told."""
        return self._found

    def _without_usage(self, events: bytes) -> bytes:
        kept: list[bytes] = []
        for event in _events(events):
            if _MARK in event:
                told = _told(event)
                if told is not None and told.usage is not None:
                    self._found = told.usage
                    if self._hide and not told.choices:
                        continue
            kept.append(event)
        return b"".join(kept)


def _events(data: bytes) -> list[bytes]:
    """Whole events with their empty lines."""
    mark = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    parts = data.split(mark)
    return [part + mark for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _told(event: bytes) -> _Answer | None:
    data = b"".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
    try:
        return _answer.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


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


def _decoded(text: bytes) -> Usage | None:
    try:
        return _usage.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
