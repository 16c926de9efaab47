"""Server-sent events: read from any split of the bytes, and written."""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT = 4 << 20  # bytes; far above the largest event of a real server (a whole answer in one event)
_BOM = b"\xef\xbb\xbf"
_PLAIN = b"data: "


class Event(NamedTuple):
    """One event: its name (empty when the server gave none) and its data; a comment is named ":"."""

    name: bytes
    data: bytes


class TooLong(Exception):
    """An event of more than `MAX_EVENT` bytes: the stream cannot be followed further."""


class Reader:
    """Events from pieces of a stream. Follows the HTML standard; a last event without its empty line counts too."""

    __slots__ = ("_after_cr", "_data", "_held", "_name", "_parts", "_started")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line whose end has not come
        self._data: list[bytes] = []  # of an event whose empty line has not come
        self._name = b""
        self._held = 0  # bytes of both
        self._after_cr = False  # an LF that comes next belongs to a CR
        self._started = False

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes."""
        if not self._held and not self._name and piece.endswith(b"\n\n") and b"\r" not in piece and self._started:
            plain = _plain(piece)
            if plain is not None:
                self._after_cr = False
                return plain
        return self._lines(piece)

    def end(self) -> list[Event]:
        """The event that the end of the stream completes, if any."""
        found = self._lines(b"\n\n") if self._held or self._name else []
        self.__init__()  # type: ignore[misc]
        return found

    def _lines(self, piece: bytes) -> list[Event]:
        if not piece:
            return []
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
        found: list[Event] = []
        for line in piece.splitlines(keepends=True):  # of bytes: at LF, CR and CRLF only
            if line[-1:] not in (b"\n", b"\r"):
                self._hold(line)
                self._parts.append(line)
                break
            if self._parts:
                self._parts.append(line)
                line = b"".join(self._parts)
                self._held -= len(line) - len(self._parts[-1])
                self._parts.clear()
            self._line(line.rstrip(b"\r\n"), found)
        self._after_cr = piece[-1:] == b"\r"
        return found

    def _hold(self, more: bytes) -> None:
        self._held += len(more)
        if self._held > MAX_EVENT:
            raise TooLong(f"an event of the stream is longer than {MAX_EVENT:,} bytes")

    def _line(self, line: bytes, found: list[Event]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                found.append(Event(self._name, b"\n".join(self._data)))
                self._held -= sum(map(len, self._data))
                self._data = []
            self._name = b""
            return
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if field == b"data":
            self._hold(value)
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif not field:
            found.append(Event(b":", value))


def _plain(piece: bytes) -> list[Event] | None:
    """The events of a piece that holds nothing but whole `data: ` lines with their empty lines, else None."""
    parts = piece[:-2].split(b"\n\n")
    if all(part.startswith(_PLAIN) and b"\n" not in part for part in parts):
        return [Event(b"", part[6:]) for part in parts]
    return None


def data(body: bytes) -> bytes:
    """An event without a name."""
    return b"data: %b\n\n" % body


def event(name: str, body: bytes) -> bytes:
    """An event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), body)


def comment(text: bytes) -> bytes:
    """A line that readers pass over: it keeps the connection awake."""
    return b":%b\n\n" % (b" " + text if text else b"")
