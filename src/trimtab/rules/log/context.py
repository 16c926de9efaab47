"""What a log rule may ask: the log's entries in order, the facts it tells, and the launch where it is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trimtab.engine.command import LaunchCommand, Source, Span
from trimtab.engine.logs import Entry, EntryKind, Log, LogFacts, Phase
from trimtab.messages import Message
from trimtab.rules.rule import Finding, Fix, Severity, Subject
from trimtab.rules.triggers import absent

if TYPE_CHECKING:
    from trimtab.rules.command.context import CommandContext

SURE, LIKELY, POSSIBLE, HUNCH, VAGUE = 0.95, 0.8, 0.5, 0.3, 0.2
"""Confidence: the line says so; it is the usual cause of the line; one cause of several; only the place in vLLM
where it failed speaks for it; the line is a consequence."""
TROUBLE = (EntryKind.EXCEPTION, EntryKind.ERROR, EntryKind.PLAIN)
"""Where a failure's cause stands: lines without the logger's prefix are libraries', the kernel's, the container's."""
EVERYWHERE = tuple(EntryKind)
MOST_EVIDENCE = 4
ASKED = (0, -2, -15, 130, 143)
"""How a process ends that was asked to: by itself, or by Ctrl-C or SIGTERM."""


class Hit(msgspec.Struct, frozen=True):
    """An entry in which a pattern was found; `hit["name"]` is the text of a named group, empty where it has none."""

    entry: Entry
    match: re.Match[str]

    def __getitem__(self, group: str) -> str:
        return self.match[group] or ""

    def number(self, group: str) -> float:
        """The group's text as a number; thousands may be parted by commas."""
        return float(self[group].replace(",", ""))


class LogContext(msgspec.Struct, frozen=True, dict=True):
    """One log, and how to learn of the launch that wrote it, which takes longer than to judge a healthy log."""

    log: Log
    command_of: Callable[[], LaunchCommand | None] = lambda: None
    launch_of: Callable[[LaunchCommand], CommandContext] | None = None

    @cached_property
    def command(self) -> LaunchCommand | None:
        """The command that wrote the log: known from outside, or rebuilt from what the log prints."""
        return self.command_of()

    @cached_property
    def launch(self) -> CommandContext | None:
        """The command with the facts beside it: flags, model, cards."""
        return self.launch_of(self.command) if self.launch_of and self.command else None

    @cached_property
    def absent(self) -> frozenset[str]:
        """Patterns of rules that are nowhere in the log: no need to compile them."""
        texts = (text for entry in self.log.entries for text in (entry.text, *entry.frames))
        return absent(Subject.LOG, "\n".join(texts).lower())

    @property
    def source(self) -> Source | None:
        return None  # a log has no suppression comments

    @property
    def extent(self) -> Span | None:
        return None

    @property
    def facts(self) -> LogFacts:
        return self.log.facts

    @property
    def version(self) -> str | None:
        """vLLM's version, where the log or the launch tells it."""
        told = self.facts.version
        return told or (self.launch.version if self.launch and not self.launch.version_assumed else None)

    @property
    def errors(self) -> tuple[Entry, ...]:
        """What the log calls an error, in order: the cause stands before its consequences."""
        return self.log.of(EntryKind.EXCEPTION, EntryKind.ERROR)

    @property
    def warnings(self) -> tuple[Entry, ...]:
        return self.log.of(EntryKind.WARNING)

    @cached_property
    def last_start(self) -> tuple[Entry, ...]:
        """The entries of the newest start in the log."""
        return tuple(e for e in self.log.entries if e.line >= self.facts.begin_line)

    @property
    def failed(self) -> bool:
        """Whether the newest start shows an error and never served, or ended by one."""
        if self.facts.exit_status is not None and self.facts.exit_status not in ASKED:
            return True
        errors = [
            e
            for e in self.last_start
            if e.kind in (EntryKind.EXCEPTION, EntryKind.ERROR) and not self.after_a_stop(e.line)
        ]
        return bool(errors) and (not self.facts.served or any(_DEAD.search(e.text) for e in errors))

    @cached_property
    def _stop(self) -> int:
        """The line from which on the newest start's server was stopping because it was asked to; 0 where it was not."""
        for entry in self.last_start:
            if _GONE.search(entry.text):
                return 0
            if _STOP.search(entry.text):
                return entry.line
        return 0

    def after_a_stop(self, line: int) -> bool:
        """Whether the server was asked to stop before: with requests running, vLLM then tells of a dead engine too."""
        return 0 < self._stop < line

    def find(self, pattern: str, *kinds: EntryKind) -> list[Hit]:
        """Every entry of these kinds (those of TROUBLE when none are named) in which the pattern is, in order."""
        if pattern in self.absent:
            return []
        search = re.compile(pattern).search
        return [Hit(e, found) for e in self._among(kinds or TROUBLE) if (found := search(e.text))]

    def first(self, *patterns: str, kinds: Iterable[EntryKind] = TROUBLE) -> Hit | None:
        """The first entry in which the first of these patterns is found that is found at all."""
        for pattern in patterns:
            if pattern in self.absent:
                continue
            search = re.compile(pattern).search
            for entry in self._among(tuple(kinds)):
                if found := search(entry.text):
                    return Hit(entry, found)
        return None

    def last(self, pattern: str) -> Hit | None:
        """The last entry of the newest start, of any kind, in which the pattern is found."""
        if pattern in self.absent:
            return None
        search = re.compile(pattern).search
        for entry in reversed(self.last_start):
            if found := search(entry.text):
                return Hit(entry, found)
        return None

    def framed(self, pattern: str) -> Hit | None:
        """The first exception in whose traceback (`File "...", line 7, in load_model`, or its code) the pattern is."""
        if pattern in self.absent:
            return None
        search = re.compile(pattern).search
        for entry in self.errors:
            for frame in entry.frames:
                if found := search(frame):
                    return Hit(entry, found)
        return None

    def _among(self, kinds: tuple[EntryKind, ...]) -> tuple[Entry, ...]:
        return self.log.entries if kinds == EVERYWHERE else self.log.of(*kinds)

    def finding(
        self,
        hits: Hit | Iterable[Hit],
        message: Message,
        confidence: float,
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding at the first hit's line, with the hits' lines as evidence."""
        shown = [hits] if isinstance(hits, Hit) else list(hits)
        evidence = tuple(hit.entry.quoted for hit in shown[:MOST_EVIDENCE])
        return Finding(
            message,
            fix=fix,
            evidence=evidence,
            confidence=confidence,
            severity=severity,
            line=shown[0].entry.line if shown else None,
        )

    def during(self, *phases: Phase | None) -> bool:
        """Whether the newest start got no further than one of these phases."""
        return self.facts.phase in phases


_STOP = re.compile(r"\[shutdown\] (?:API server: shutdown triggered|Process manager: force killing)")
"""vLLM 0.26 to 0.33, before what it tells of its end."""
_GONE = re.compile(r"engine core exited unexpectedly")
_DEAD = re.compile(
    r"EngineDeadError|Engine core proc .* died|EngineCore encountered|Segmentation fault|^Killed|died unexp"
)
