"""Which reader a text needs, and what no reader can take: binary, too large, not UTF-8."""

from __future__ import annotations

from trimtab.engine.command import Arity, Reading, Source
from trimtab.engine.source import Layer, Problem, Span
from trimtab.messages import msg

LARGEST_BYTES = 4 * 1024 * 1024
"""A hundred times the largest script seen; parsing more than this keeps people waiting."""
BOM = b"\xef\xbb\xbf"


def read(text: str | bytes, filename: str | None, arity: Arity | None) -> Reading:
    """See command.read_commands."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    source = Source(data, filename)
    problem = unreadable(source)
    if problem:
        return Reading((), (problem,), source)
    from trimtab.engine.reading import shell

    commands, problems = shell.read(source, Layer.root(data), arity)
    return Reading(tuple(commands), tuple(problems), source)


def unreadable(source: Source) -> Problem | None:
    """Why the bytes cannot be taken as a text at all, None if they can."""
    data = source.data
    if len(data) > LARGEST_BYTES:
        size = msg("The text has {size:,} bytes; at most {most:,} are read.", size=len(data), most=LARGEST_BYTES)
        return Problem(size, Span(0, 0), 1, 1)
    nul = data.find(b"\0")
    if nul >= 0:
        return source.problem(msg("Byte {offset} is NUL: this is not a text file.", offset=nul), Span(nul, nul + 1))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as e:
        bad = msg("Byte {offset} is 0x{byte:02X}, which is not UTF-8.", offset=e.start, byte=data[e.start])
        return source.problem(bad, Span(e.start, e.start + 1))
    return None
