"""A whole log -> what it told: bytes in, values out, in one pass and in bounded memory. Pure.

Most lines of a serving engine's log say that a request came in or how fast tokens go out. Those are told by their
first bytes and never decoded; the lines of a start, and all that is no INFO or DEBUG line, are read in full.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from functools import partial

from trimtab.engine.logs.events import Kind, LogEvent, Phase, parse_line
from trimtab.engine.logs.grouping import Entries
from trimtab.engine.logs.launch import LaunchReader
from trimtab.engine.logs.line_ends import MOST_BYTES, lines_of, pieces
from trimtab.engine.logs.log import Access, Log, LogFacts
from trimtab.engine.logs.repeats import Repeats
from trimtab.engine.logs.wrapping import unwrap

START_LINES = 20_000
"""Lines after the sign of a start that are read in full."""
TAIL = 40
KEPT_STARTS = 3
"""Of a server that is started again and again: only what the last of its starts died of is asked for."""
ONCE_A_START = b"non-default args: "
STARTS = (b"non-default args: ", b"vLLM API server version", b"LLM engine (v", b" args: Namespace(")
"""What only a start prints."""
_FIRST_SIGN = re.compile(r"non-default args: |vLLM API server version|args: Namespace\(|LLM engine \(v")
_ACCESS = re.compile(r'"[A-Z]+ (/[^ ?"]*)[^"]*" ([45]\d\d)')
_ANSWERED = re.compile(r'- "[A-Z]+ \S+ HTTP/1\.\d" \d\d\d')
_LEVEL = re.compile(rb"(?:DEBUG|INFO)[ :]")
_CLOCK = re.compile(rb"\d\d:\d\d")
_ORDER = {None: 0, Phase.LOADING: 1, Phase.COMPILING: 2, Phase.SERVING: 3}


def read_log(chunks: Iterable[bytes], exit_status: int | None = None) -> Log:
    """Read a log of any size, in chunks of any size, of any source. `exit_status` is the process's, where known."""
    reader = _Reader(exit_status)
    for chunk, lines in lines_of(chunks):
        reader.take(chunk, lines)
    return reader.log()


class _Reader:
    def __init__(self, exit_status: int | None) -> None:
        self._exit_status = exit_status
        self._number = 0
        self._eager = START_LINES
        self._quiet: tuple[bytes, ...] = (b"INFO ", b"DEBUG ", b"INFO: ")
        self._tail: deque[bytes] = deque(maxlen=TAIL)
        self._entries = Entries()
        self._repeats = Repeats()
        self._accesses: dict[tuple[int, str], Access] = {}
        self._starts = 0
        self._begin()

    def _begin(self) -> None:
        self._launch = LaunchReader()
        self._phase: Phase | None = None
        self._phase_line = 0
        self._served = self._stopped = False
        self._signs: set[str] = set()
        self._begin_line = 0

    def take(self, chunk: bytes, lines: list[bytes]) -> None:
        """The lines that end in `chunk`; a sign cut by its end is found in the next of the start's signs."""
        self._tail.extend(lines[-TAIL:])
        number = self._number
        self._number += len(lines)
        if self._eager <= 0 and any(sign in chunk for sign in STARTS):
            self._eager, self._repeats = START_LINES, Repeats()
        if passed := self._passed(chunk):
            lines, number = lines[passed:], number + passed
        if self._eager > 0:
            self._eager -= len(lines)
            for line in lines:
                number += 1
                self._read(number, line)
            return
        for due in self._repeats.due(number + 1, lines, self._quiet):
            self._read(*due)

    def _passed(self, chunk: bytes) -> int:
        """How many lines of the chunk need no reading: those of starts before the last KEPT_STARTS that it holds."""
        count = chunk.count(ONCE_A_START)
        if count <= KEPT_STARTS:
            return 0
        position = len(chunk)
        for _ in range(KEPT_STARTS):
            position = chunk.rfind(ONCE_A_START, 0, position)
        self._starts += count - KEPT_STARTS
        return chunk.count(b"\n", 0, position)

    def _read(self, number: int, line: bytes) -> None:
        for raw in pieces(line) if b"\r" in line else (line,):
            self._read_piece(number, raw)

    def _read_piece(self, number: int, raw: bytes) -> None:
        text, rank = unwrap(raw[:MOST_BYTES].decode("utf-8", "replace"))
        if not text or text.isspace():
            return
        event = parse_line(text)
        if event.level in ("INFO", "DEBUG"):
            self._learn(raw)
            if " HTTP/1." in event.text and self._access(number, event.text):
                self._served = True
                return
        self._facts(number, event)
        self._entries.take(number, event, rank or event.process, self._phase, self._starts)

    def _learn(self, raw: bytes) -> None:
        """Remember how a process's INFO lines begin, so that the next ones need not be decoded."""
        if len(self._quiet) < 64 and (found := _LEVEL.search(raw, 0, 120)):
            head = raw[: found.end()]
            if not _CLOCK.search(head) and not head.startswith(self._quiet):
                self._quiet = (*self._quiet, head)

    def _access(self, number: int, text: str) -> bool:
        """Whether it is a line of the HTTP server's; those of 400 and above are counted."""
        found = _ACCESS.search(text)
        if found is None:
            return _ANSWERED.search(text) is not None
        key = (int(found[2]), found[1])
        known = self._accesses.get(key)
        if known is not None or len(self._accesses) < 200:
            first = known.line if known else number
            self._accesses[key] = Access(*key, (known.count if known else 0) + 1, first)
        return True

    def _facts(self, number: int, event: LogEvent) -> None:
        if event.kind is Kind.OTHER or event.kind is Kind.VERSION:
            self._sign_of_a_start(number, event)
        if event.level in ("INFO", "DEBUG", ""):
            self._launch.take(event.text)
        elif "GiB" in event.text:
            self._launch.sizes(event.text)
        self._launch.numbers.update({k: v for k, v in event.numbers.items() if k not in ("done", "total", "seconds")})
        phase = event.phase
        if phase is not None and _ORDER[phase] >= _ORDER[self._phase]:
            self._phase, self._phase_line = phase, number
        if event.kind is Kind.LISTENING:
            self._served = True
        elif event.kind is Kind.SHUTDOWN:
            self._stopped = True

    def _sign_of_a_start(self, number: int, event: LogEvent) -> None:
        """A sign that this start already gave, or one after it served or ended, begins another start."""
        found = _FIRST_SIGN.search(event.text)
        if found is None:
            return
        sign = f"{found[0]}{event.process}"
        if sign in self._signs and "LLM engine" not in sign:
            self._entries.another_start()
            self._begin()
        if not self._signs:
            self._starts += 1
            self._begin_line = number if self._starts > 1 else 0
        self._signs.add(sign)

    def log(self) -> Log:
        facts = self._launch.facts(
            partial(
                LogFacts,
                phase=self._phase,
                phase_line=self._phase_line,
                served=self._served,
                stopped=self._stopped,
                starts=self._starts,
                begin_line=self._begin_line,
                exit_status=self._exit_status,
            )
        )
        tail = tuple(unwrap(line[:MOST_BYTES].decode("utf-8", "replace"))[0] for line in self._tail)
        entries = self._entries.finished()
        return Log(entries, facts, self._number, tail, tuple(self._accesses.values()), self._entries.cut)
