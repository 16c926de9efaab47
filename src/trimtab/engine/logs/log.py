"""What a whole log told: its errors in order, its warnings and notes, and the facts about the launch. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from trimtab.engine.logs.events import Phase

_NONE: Mapping[str, object] = MappingProxyType({})
_NO_NUMBERS: Mapping[str, float] = MappingProxyType({})
_NO_WORDS: Mapping[str, str] = MappingProxyType({})


class EntryKind(StrEnum):
    """What an entry is, the most telling first."""

    EXCEPTION = "exception"  # what a traceback ends with, or a line of that form
    ERROR = "error"  # the logger's ERROR or CRITICAL, an error of the command line, a dying process's last word
    WARNING = "warning"
    PLAIN = "plain"  # a line without the logger's prefix: a library's, the kernel's, the container's
    NOTE = "note"  # the logger's INFO and DEBUG, of a start only


class Entry(msgspec.Struct, frozen=True):
    """Something that the log tells, once however often it tells it. Lines are numbered from 1, as `sed -n` does.

    `frames` are the traceback's lines above an exception, innermost last. `start` tells which start of several in
    one log it belongs to. `process` is "EngineCore", "Worker_TP0", "rank0", or empty where no prefix names one.
    """

    kind: EntryKind
    line: int
    text: str
    process: str = ""
    pid: int = 0
    frames: tuple[str, ...] = ()
    phase: Phase | None = None
    start: int = 0
    repeats: int = 1

    @property
    def quoted(self) -> str:
        """As evidence: the line's number and its text, cut where it is long."""
        text = self.text if len(self.text) <= 300 else f"{self.text[:297]}..."
        return f"line {self.line}: {text}"


class Access(msgspec.Struct, frozen=True):
    """How often the HTTP server answered with one status on one path, and the first line that says so."""

    status: int
    path: str
    count: int
    line: int


class LogFacts(msgspec.Struct, frozen=True):
    """What the newest start in the log says about itself.

    `args` are the launch's own flags, by vLLM's names with underscores; `all_args` tells that they hold the defaults
    too (before 0.8). `engine` is the configuration that the engine prints. `numbers` are by name and unit:
    `weights_gib`, `kv_gib`, `kv_tokens`, `context_tokens`, `total_gib`, `free_gib`, `graph_gib`. `starts` counts the
    starts in the log; the newest begins at `begin_line`.
    """

    version: str | None = None
    args: Mapping[str, object] = _NONE
    all_args: bool = False
    engine: Mapping[str, str] = _NO_WORDS
    architecture: str | None = None
    device: str | None = None
    numbers: Mapping[str, float] = _NO_NUMBERS
    phase: Phase | None = None
    phase_line: int = 0
    served: bool = False
    stopped: bool = False
    starts: int = 0
    begin_line: int = 0
    exit_status: int | None = None

    @property
    def model(self) -> str | None:
        """As the launch names it."""
        found = self.args.get("model") or self.args.get("model_tag") or self.engine.get("model")
        return str(found) if found else None


class Log(msgspec.Struct, frozen=True):
    """A log as read. `cut` tells that entries were left out because there were too many different ones."""

    entries: tuple[Entry, ...]
    facts: LogFacts
    lines: int
    tail: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()
    cut: bool = False

    def of(self, *kinds: EntryKind) -> tuple[Entry, ...]:
        """The entries of these kinds, in order."""
        return tuple(e for e in self.entries if e.kind in kinds)

    @property
    def of_an_engine(self) -> bool:
        """Whether any of it is vLLM's or its HTTP server's, or an error: more than lines of nobody knows what."""
        facts = self.facts
        told = facts.starts or facts.version or facts.phase or facts.served or facts.stopped or self.accesses
        return bool(told) or any(e.kind is not EntryKind.PLAIN or e.process for e in self.entries)
