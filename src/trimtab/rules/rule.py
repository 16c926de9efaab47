"""What a rule is made of: all that the author of a rule needs, and nothing that runs one.

A rule is one file that ends in a `RULE = Rule(...)`, and one line in `registry.py`. Its check is a pure function of a
context; it yields findings, or asks the context for a fact that nobody gave, which the runner reports as not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.engine.command import Edit, Span
from trimtab.messages import Message
from trimtab.rules.causes import Cause


class Severity(StrEnum):
    """How bad: an error does not start or dies, a warning works but not as meant, an info is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Subject(StrEnum):
    """What a rule looks at; its codes carry the prefix."""

    COMMAND = "CMD"
    HOST = "HST"
    LOG = "LOG"
    CLIENT = "CLT"


class Grade(StrEnum):
    """How far a fix may be trusted: applied by --fix, applied by --fix --unsafe, or only shown."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Fact(StrEnum):
    """What a rule may need and nobody may have given."""

    VLLM = "vllm"
    MODEL = "model"
    GPU = "gpu"
    HOST = "host"
    CHECKPOINT = "checkpoint"


class FactMissing(Exception):
    """Raised by a context when a rule asks for a fact that was not given."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact.value)
        self.fact = fact


class Fix(msgspec.Struct, frozen=True):
    """The one change that mends a finding."""

    edits: tuple[Edit, ...]
    grade: Grade = Grade.SAFE


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, at a place: a span of the command, or a line of the log.

    `confidence` (0 to 1) is given by log and client rules only; `fix` of theirs edits the launch command.
    """

    message: Message
    span: Span | None = None
    fix: Fix | None = None
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    severity: Severity | None = None
    line: int | None = None


class Example(msgspec.Struct, frozen=True):
    """A text and the facts beside it. In a bad example `at` is the marked text, `fixed` the text after the fix.

    Of a log `at` is how the first line of evidence begins, `fixed` the launch command after the fix.
    """

    text: str
    at: str | None = None
    fixed: str | None = None
    vllm: str | None = None
    gpu: str | None = None
    model: str | None = None
    host_gib: float | None = None
    exit_status: int | None = None


class Rule(msgspec.Struct, frozen=True):
    """A declaration: the module's docstring holds What it does, Why it matters, How to fix, When to ignore, Sources.

    `since` and `until` bound the vLLM versions for which the rule holds (both inclusive, "0.18"; None is open).
    `cause` is what log and client rules recognise.
    """

    code: str
    name: str
    severity: Severity
    summary: Message
    check: Callable[[Any], Iterable[Finding]]
    sources: tuple[str, ...]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    since: str | None = None
    until: str | None = None
    cause: Cause | None = None

    @property
    def subject(self) -> Subject:
        """Told by the code's prefix."""
        return Subject(self.code[:3])

    @property
    def url(self) -> str:
        """Where the rule's page stands, from the project's top."""
        return f"docs/rules/{self.code}.md"
