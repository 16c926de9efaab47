"""What a client rule may ask: the answers of a probe, or the lines of a client's error text; both as statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

from trimtab.engine.api import ApiFault, read_fault
from trimtab.engine.command import LaunchCommand, Source, Span
from trimtab.engine.evidence import Answer, Evidence, Trouble
from trimtab.messages import Message
from trimtab.rules.client.statements import Statement, joined, path_of
from trimtab.rules.log.context import LIKELY, POSSIBLE, SURE, VAGUE
from trimtab.rules.rule import Finding, Severity, Subject
from trimtab.rules.triggers import absent

__all__ = ["LIKELY", "POSSIBLE", "SURE", "VAGUE", "ClientContext", "Hit"]
MOST_EVIDENCE = 4
BESIDE = ("root", "health", "version", "generate", "proxied", "key stripped", "other header")
"""Steps of a probe that no client takes: rules look at them by name alone."""


class Hit(msgspec.Struct, frozen=True):
    """A statement in which a pattern was found; `hit["name"]` is a named group's text, empty where it has none."""

    statement: Statement
    match: re.Match[str]

    def __getitem__(self, group: str) -> str:
        return (self.match.groupdict().get(group) or "").strip()


class ClientContext(msgspec.Struct, frozen=True, dict=True):
    """An endpoint as it was probed (`evidence`), or a text (`lines`)."""

    evidence: Evidence = Evidence(url="")
    lines: tuple[Statement, ...] = ()
    command_of: Callable[[], LaunchCommand | None] = lambda: None

    @cached_property
    def command(self) -> LaunchCommand | None:
        """The server's launch, where known."""
        return self.command_of()

    @property
    def source(self) -> Source | None:
        return None

    @property
    def extent(self) -> Span | None:
        return None

    @property
    def version(self) -> str | None:
        """Rules hold for every version: a client's text seldom tells the server's."""
        return None

    @property
    def probed(self) -> bool:
        """Whether an endpoint was asked, rather than a text read."""
        return bool(self.evidence.url)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The lines, or what each answer said that is no success and that a client would get."""
        return self.lines or tuple(
            _of(answer) for answer in self.evidence.answers if answer.failed and answer.step not in BESIDE
        )

    @cached_property
    def _wrapped(self) -> tuple[Statement, ...]:
        return tuple(joined(self.lines))

    @cached_property
    def absent(self) -> frozenset[str]:
        """Patterns of rules that no statement holds: no need to compile them."""
        return absent(Subject.CLIENT, "\n".join(s.text for s in (*self.statements, *self._wrapped)).lower())

    @property
    def statuses(self) -> frozenset[int]:
        """Every HTTP status that a statement tells."""
        return frozenset(s.status for s in self.statements if s.status is not None)

    def said(self, *patterns: str) -> Hit | None:
        """The first statement in which the first of these patterns is found that is found at all; case counts not."""
        for pattern in patterns:
            if pattern in self.absent:
                continue
            search = re.compile(pattern, re.IGNORECASE).search
            for statement in (*self.statements, *self._wrapped):
                if found := search(statement.text):
                    return Hit(statement, found)
        return None

    def with_status(self, *codes: int) -> tuple[Statement, ...]:
        """The statements that tell one of these HTTP statuses."""
        return tuple(s for s in self.statements if s.status in codes)

    def answer(self, step: str) -> Answer | None:
        """What came of a step of the probe."""
        return self.evidence.answer(step)

    def troubled(self, *troubles: Trouble) -> Answer | None:
        """The first request without an answer for one of these reasons."""
        return next((a for a in self.evidence.answers if a.trouble in troubles), None)

    @property
    def basic(self) -> Answer | None:
        """The first request that was refused with the demand for a user name and a password (HTTP Basic)."""
        refused = (a for a in self.evidence.answers if a.status == 401 and a.asks.lower().startswith("basic"))
        return next(refused, None)

    def fault(self, step: str) -> ApiFault | None:
        """The error body of a step that was answered with one."""
        answer = self.answer(step)
        if answer is None or answer.status is None or not answer.failed:
            return None
        return read_fault(answer.status, answer.body.encode())

    def finding(
        self,
        shown: Hit | Statement | Answer | Iterable[Hit | Statement | Answer],
        message: Message,
        confidence: float,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding with what was said as evidence, at the first line of it."""
        parts = [shown] if isinstance(shown, Hit | Statement | Answer) else list(shown)
        said = [part.statement if isinstance(part, Hit) else part for part in parts][:MOST_EVIDENCE]
        line = next((part.line for part in said if isinstance(part, Statement)), None)
        return Finding(
            message,
            evidence=tuple(part.quoted for part in said),
            confidence=confidence,
            severity=severity,
            line=line,
        )


def _of(answer: Answer) -> Statement:
    body = " ".join(answer.body.replace('\\"', '"').split())
    text = f"{answer.quoted.split(' -> ')[0]} -> {answer.status or answer.trouble}: {answer.detail}{body}"
    return Statement(text, None, answer.status, answer.method, path_of(answer.url), answer.url)
