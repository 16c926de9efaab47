"""Where a log's lines end: LF, CRLF, a lone CR where there is no LF; overwritten progress bars are left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_BYTES = 1 << 14
"""Of one line that are read; the rest of it is passed over."""
_OF_BARS = (b"%|", b"% |", b"% Completed", b"it/s", b"s/it", b"B/s")
_RUNS = re.compile(rb"\r+\n|\r\r+")


def lines_of(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """A chunk and the lines that end in it; of a line over MOST_BYTES only the beginning is held until it ends.

    A line may hold lone CRs still: `pieces` takes it apart. They count as one line, as `sed -n` has it.
    """
    held: list[bytes] = []
    size = 0
    for chunk in _with_newlines(chunks):
        first, newline, rest = chunk.partition(b"\n")
        if size < MOST_BYTES:
            held.append(first)
            size += len(first)
        if newline:
            *lines, last = rest.split(b"\n")
            yield chunk, [b"".join(held), *lines]
            held, size = [last], len(last)
    if size:
        yield b"", [b"".join(held)]


def pieces(line: bytes) -> list[bytes]:
    """What a line with CRs inside shows: the parts that no progress bar overwrote, in order."""
    parts = line.split(b"\r")
    last = next((at for at in range(len(parts) - 1, -1, -1) if parts[at]), 0)
    return [part for at, part in enumerate(parts) if part and (at == last or not _is_bar(part))]


def _with_newlines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks with LF for CRLF, and for a lone CR where no LF came yet or none in MOST_BYTES."""
    waiting = b""  # a CR that ends a chunk: an LF may follow
    begun, since = False, 0  # whether there was an LF; bytes after the last one
    for read in chunks:
        chunk = read
        if waiting or b"\r" in chunk:
            chunk = waiting + chunk
            waiting = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk[: len(chunk) - len(waiting)].replace(b"\r\n", b"\n")
        alone = b"\r" in chunk
        if alone:
            chunk = _without_bars(_RUNS.sub(_one, chunk) if b"\r\r" in chunk or b"\r\n" in chunk else chunk)
        newline, cut_since = chunk.rfind(b"\n"), since
        since = since + len(chunk) if newline < 0 else len(chunk) - newline - 1
        if alone and not begun and b"\n" not in chunk[:-1]:
            chunk = chunk.replace(b"\r", b"\n")
        elif alone:
            chunk = _long_lines_cut(chunk, cut_since)
        begun = begun or (newline >= 0)
        yield chunk


def _one(run: re.Match[bytes]) -> bytes:
    return b"\n" if run[0].endswith(b"\n") else b"\r"


def _is_bar(text: bytes) -> bool:
    return any(sign in text for sign in _OF_BARS)


def _without_bars(chunk: bytes) -> bytes:
    """The first part may be the end of a text that came before: its CR stays."""
    if not _is_bar(chunk):
        return chunk
    first, *overwritten, last = chunk.split(b"\r")
    kept = [first, b"\r"]
    for part in overwritten:
        before, newline, text = part.rpartition(b"\n")
        kept += (before, newline) if _is_bar(text) else (part, b"\r")
    return b"".join((*kept, last))


def _long_lines_cut(chunk: bytes, since: int) -> bytes:
    """CRs end lines where the text between two LFs is longer than any line that is read."""
    lines = chunk.split(b"\n")
    lines[0] = lines[0].replace(b"\r", b"\n") if since + len(lines[0]) > MOST_BYTES else lines[0]
    return b"\n".join(
        (lines[0], *(line.replace(b"\r", b"\n") if len(line) > MOST_BYTES else line for line in lines[1:]))
    )
