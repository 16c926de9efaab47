"""Events with their lines -> entries: tracebacks put together per process, long texts joined, repeats counted.

Several processes write into one log at once, so what is open is held for each of them.
"""

from __future__ import annotations

import re

from trimtab.engine.logs.events import Kind, LogEvent, Phase
from trimtab.engine.logs.log import Entry, EntryKind

MOST = {
    EntryKind.EXCEPTION: 1000,
    EntryKind.ERROR: 1000,
    EntryKind.WARNING: 500,
    EntryKind.PLAIN: 2000,
    EntryKind.NOTE: 3000,
}
"""Different entries of a kind that are kept."""
_TELLING = (EntryKind.EXCEPTION, EntryKind.ERROR, EntryKind.WARNING)
VARIANTS = 4
"""Entries kept that differ in their numbers only."""
CONTINUED = 8
"""Lines that an exception's text may go on for."""
_FIRST_FRAMES, _LAST_FRAMES = 20, 60
_FRAME = re.compile(r"File \"|\^|~|\.\.\. ?$|\[Previous line repeated")
_BEHEADED = re.compile(r" +File \".+\", line \d+, in ")
"""A traceback whose first line was cut off begins so."""
_LEVELS = ("DEBUG ", "INFO ", "WARNING ")
"""How a line of the logger begins that was cut within its prefix."""
_DIGITS = str.maketrans("", "", "0123456789")


class _Open:
    """A traceback, or an exception whose text may go on, of one process."""

    def __init__(self, number: int, event: LogEvent) -> None:
        self.line, self.event = number, event
        self.beheaded = _BEHEADED.match(event.text) is not None
        self.frames: list[str] = []
        self.parts: list[str] = []
        self.lines: list[tuple[int, str]] = []

    def frame(self, number: int, text: str) -> None:
        if self.beheaded and len(self.lines) <= _FIRST_FRAMES + _LAST_FRAMES:
            self.lines.append((number, text.strip()))
        frame = text.strip()
        if frame.strip("^~"):
            self.frames.append(frame)
        if len(self.frames) > 2 * (_FIRST_FRAMES + _LAST_FRAMES):
            del self.frames[_FIRST_FRAMES:-_LAST_FRAMES]

    @property
    def text(self) -> str:
        """What the exception says; of an assertion without words the code that was asserted."""
        text = " ".join(self.parts)
        bare = text.rstrip(": ") == "AssertionError" and self.frames and self.frames[-1].startswith("assert ")
        return f"AssertionError: {self.frames[-1]}" if bare else text

    def goes_on(self, event: LogEvent) -> bool:
        """Whether the line belongs to the exception's text: its report by pydantic, its further sentences."""
        if not self.parts or len(self.parts) > CONTINUED or not event.text:
            return False
        if event.kind in (Kind.PLAIN, Kind.ERROR):
            return event.kind is Kind.PLAIN and not event.text.startswith(("Process ", "[", "usage:"))
        return event.kind is Kind.TRACEBACK and event.text[0] == " " and not _FRAME.match(event.text.lstrip())


class _Kept:
    def __init__(self, entry: Entry) -> None:
        self.entry, self.repeats = entry, 0


class Entries:
    """Takes events in order; `finished` gives the entries."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int, str], _Open] = {}
        self._kept: dict[tuple[EntryKind, int, str], _Kept] = {}
        self._variants: dict[tuple[EntryKind, int, str], int] = {}
        self._counts = dict.fromkeys(EntryKind, 0)
        self._place: tuple[Phase | None, int] = (None, 0)
        self.cut = False

    def take(self, number: int, event: LogEvent, process: str, phase: Phase | None, start: int) -> None:
        """One line's event; `process` may name a rank that the event does not know of."""
        self._place = (phase, start)
        key = (process, event.pid, event.level)
        held = self._open.get(key)
        if event.kind is Kind.TRACEBACK:
            self._traceback(key, held, number, event)
        elif event.kind is Kind.EXCEPTION:
            self._exception(key, held, number, event)
        elif held is not None and held.goes_on(event):
            held.parts.append(event.text.strip())
        else:
            if held is not None:
                self._close(key)
            self._keep(_kind(event), number, event.text.strip(), key)

    def _traceback(self, key: tuple[str, int, str], held: _Open | None, number: int, event: LogEvent) -> None:
        begins = event.text.startswith(("Traceback", "During", "The above"))
        if held is not None and not begins:
            if held.goes_on(event):
                held.parts.append(event.text.strip())
                return
            if not held.parts:
                held.frame(number, event.text)
                return
        if held is not None:
            self._close(key)
        if event.text.startswith("Traceback"):
            self._open[key] = _Open(number, event)
        elif _BEHEADED.match(event.text):
            self._open[key] = opened = _Open(number, event)
            opened.frame(number, event.text)
        elif not begins:
            self._keep(EntryKind.PLAIN, number, event.text.strip(), key)

    def _exception(self, key: tuple[str, int, str], held: _Open | None, number: int, event: LogEvent) -> None:
        if held is None or held.parts:
            if held is not None:
                self._close(key)
            held = self._open[key] = _Open(number, event)
        held.line = number
        held.parts.append(event.text.strip())

    def _close(self, key: tuple[str, int, str]) -> None:
        held = self._open.pop(key)
        if held.parts:
            self._keep(EntryKind.EXCEPTION, held.line, held.text, key, held.frames)
        elif held.beheaded:  # a dump of stacks, or a text that only looks like one: no failure is told
            for line, text in held.lines:
                self._keep(EntryKind.PLAIN, line, text, key)
        elif held.frames:
            self._keep(EntryKind.ERROR, held.line, f"Traceback: {held.frames[-1]}", key, held.frames)

    def _keep(
        self, kind: EntryKind, line: int, text: str, key: tuple[str, int, str], frames: list[str] | None = None
    ) -> None:
        phase, start = self._place
        if not text:
            return
        known = self._kept.get((kind, start, text))
        if known is not None:
            known.repeats += 1
            return
        if self._counts[kind] >= MOST[kind]:
            self.cut = True
            return
        like = (kind, start, text[:400].translate(_DIGITS))
        self._variants[like] = variants = self._variants.get(like, 0) + 1
        if variants > VARIANTS:
            return
        self._counts[kind] += 1
        entry = Entry(kind, line, text, key[0], key[1], tuple(frames or ()), phase, start)
        self._kept[kind, start, text] = _Kept(entry)

    def another_start(self) -> None:
        """Make room for a start that begins now: of the one before only what was wrong is kept, of others nothing."""
        for key in list(self._open):
            self._close(key)
        last = self._place[1]
        told = {k: v for k, v in self._kept.items() if v.entry.start >= last and k[0] in _TELLING}
        self._kept, self._variants = told, {}
        self._counts = {kind: sum(k[0] is kind for k in told) for kind in EntryKind}

    def finished(self) -> tuple[Entry, ...]:
        """Every entry in the order of its line, what is still open closed."""
        for key in list(self._open):
            self._close(key)
        entries = [_counted(kept) for kept in self._kept.values()]
        return tuple(sorted(entries, key=lambda e: e.line))


def _counted(kept: _Kept) -> Entry:
    if not kept.repeats:
        return kept.entry
    from msgspec.structs import replace

    return replace(kept.entry, repeats=kept.repeats + 1)


def _kind(event: LogEvent) -> EntryKind:
    if event.kind is Kind.ERROR:
        return EntryKind.ERROR
    if event.level == "WARNING" or (event.level == "" and event.text.startswith("WARNING ")):
        return EntryKind.WARNING
    if event.level == "" and not event.text.startswith(_LEVELS):
        return EntryKind.PLAIN
    return EntryKind.NOTE
