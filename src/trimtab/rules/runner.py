"""Run rules over a context: selecting, suppressing, grading, sorting and fixing, which no rule knows of."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from trimtab.engine.command import Source, Span, apply_edits
from trimtab.errors import InternalError, UsageError
from trimtab.messages import Message, msg
from trimtab.rules.rule import Fact, FactMissing, Finding, Fix, Grade, Rule, Severity

MAX_FIX_ROUNDS = 100
_SUPPRESS = re.compile(r"#\s*trimtab:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]\n]*)\])?")


class Context(Protocol):
    """What every subject's context offers the runner."""

    @property
    def source(self) -> Source | None: ...

    @property
    def extent(self) -> Span | None:
        """Where in the source the judged thing stands; a suppression comment just above covers all of it."""

    @property
    def version(self) -> str | None: ...


class Reported(msgspec.Struct, frozen=True):
    """A finding with its rule and place. `line` and `column` are 1-based characters; None without a source."""

    rule: Rule
    severity: Severity
    message: Message
    file: str | None
    line: int | None
    column: int | None
    span: Span | None
    fix: Fix | None
    evidence: tuple[str, ...]
    confidence: float | None


class NotJudged(msgspec.Struct, frozen=True):
    """A rule that would have had something to say, had it been told `needs`."""

    rule: Rule
    needs: Fact


class Report(msgspec.Struct, frozen=True):
    """What one run over any number of contexts found, worst first within a file."""

    findings: tuple[Reported, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()

    def worst(self) -> Severity | None:
        """The highest severity found."""
        return min((f.severity for f in self.findings), key=lambda s: s.rank, default=None)

    def __add__(self, other: Report) -> Report:
        judged = dict.fromkeys((*self.not_judged, *other.not_judged))
        return Report((*self.findings, *other.findings), tuple(judged))


class Selection(msgspec.Struct, frozen=True):
    """Codes, names or prefixes to keep and to drop (dropping wins), and severities set by the user."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severities: dict[str, Severity] = msgspec.field(default_factory=dict)

    def takes(self, rule: Rule) -> bool:
        """Whether the rule is to be run."""
        kept = not self.select or any(_names(rule, s) for s in self.select)
        return kept and not any(_names(rule, s) for s in self.ignore)

    def grade(self, rule: Rule, finding: Finding) -> Severity:
        """The user's severity for the rule, else the finding's own, else the rule's."""
        own = self.severities.get(rule.code) or self.severities.get(rule.name)
        return own or finding.severity or rule.severity

    def checked(self, rules: Iterable[Rule]) -> Selection:
        """This selection, or UsageError for an entry that names no rule."""
        known = list(rules)
        for entry in (*self.select, *self.ignore, *self.severities):
            if not any(_names(rule, entry) for rule in known):
                raise UsageError(msg("no rule is called {wanted}", wanted=entry))
        return self


def run(rules: Sequence[Rule], context: Context, selection: Selection | None = None) -> Report:
    """Run `rules` over one context. A finding on a line with a suppression comment, or below one, is dropped."""
    chosen = selection or Selection()
    found: list[Reported] = []
    unjudged: list[NotJudged] = []
    for rule in rules:
        if not chosen.takes(rule) or not holds_for(rule, context.version):
            continue
        try:
            findings = list(rule.check(context))
        except FactMissing as missing:
            unjudged.append(NotJudged(rule, missing.fact))
            continue
        found += [_placed(rule, f, context.source, chosen) for f in findings]
    kept = _without_suppressed(found, context)
    kept.sort(key=lambda f: (f.file or "", f.line or 0, f.severity.rank, f.column or 0, f.rule.code))
    return Report(tuple(kept), tuple(unjudged))


def holds_for(rule: Rule, version: str | None) -> bool:
    """Whether the rule's bounds admit `version`; without a version a bounded rule still runs and asks for it itself."""
    if version is None:
        return True
    at = release(version)
    if rule.since is not None and at < release(rule.since):
        return False
    # An upper bound names a minor version: 0.17 admits 0.17.3.
    return rule.until is None or at[: len(release(rule.until))] <= release(rule.until)


@lru_cache(maxsize=512)
def release(version: str) -> tuple[int, ...]:
    """(0, 26, 1) of "0.26.1+cpu" or "v0.26.1.dev3"; () of no number."""
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(n) for n in numbers.group(1).split(".")) if numbers else ()


def fix(text: str, lint: Callable[[str], Report], *, unsafe: bool = False) -> tuple[str, list[Reported]]:
    """Apply fixes until nothing changes; the new text and what was mended. Display fixes are never applied."""
    grades = {Grade.SAFE, Grade.UNSAFE} if unsafe else {Grade.SAFE}
    mended: list[Reported] = []
    for _ in range(MAX_FIX_ROUNDS):
        fixable = [f for f in lint(text).findings if f.fix is not None and f.fix.grade in grades]
        taken = _apart(fixable)
        after = apply_edits(text, [edit for f in taken if f.fix for edit in f.fix.edits])
        if after == text:
            return text, mended
        text, mended = after, mended + taken
    raise InternalError(msg("fixes did not come to rest after {rounds} rounds", rounds=MAX_FIX_ROUNDS))


def _apart(findings: list[Reported]) -> list[Reported]:
    """Those findings whose edits do not touch one another, first come first."""
    taken: list[Reported] = []
    used: list[Span] = []
    for finding in findings:
        edits = finding.fix.edits if finding.fix else ()
        if all(e.span.end < u.start or e.span.start > u.end for e in edits for u in used):
            taken.append(finding)
            used += [e.span for e in edits]
    return taken


def _placed(rule: Rule, finding: Finding, source: Source | None, selection: Selection) -> Reported:
    line, column = finding.line, None
    if source is not None and finding.span is not None:
        line, column = source.line_column(finding.span.start)
    return Reported(
        rule=rule,
        severity=selection.grade(rule, finding),
        message=finding.message,
        file=source.filename if source else None,
        line=line,
        column=column,
        span=finding.span,
        fix=finding.fix,
        evidence=finding.evidence,
        confidence=finding.confidence,
    )


def _without_suppressed(findings: list[Reported], context: Context) -> list[Reported]:
    source = context.source
    if source is None or not findings or not (comments := _comments(source)):
        return findings
    first = source.line_column(context.extent.start)[0] if context.extent else 0
    last = source.line_column(context.extent.end)[0] if context.extent else 0
    quiet: list[tuple[range, list[str]]] = []
    for number, text, match in comments:
        codes = [c.strip() for c in (match["codes"] or "").split(",") if c.strip()]
        quiet.append((_quiet_lines(number, text, match, first, last), codes))
    return [f for f in findings if not any(_is_quiet(f, lines, codes) for lines, codes in quiet)]


@lru_cache(maxsize=4)
def _comments(source: Source) -> list[tuple[int, str, re.Match[str]]]:
    """Every suppression comment with its line's number and text."""
    if b"trimtab:" not in source.data:
        return []
    lines = enumerate(source.text.split("\n"), 1)
    return [(number, text, match) for number, text in lines for match in _SUPPRESS.finditer(text)]


def _quiet_lines(number: int, text: str, match: re.Match[str], first: int, last: int) -> range:
    if match["file"]:
        return range(sys.maxsize)
    if not text.lstrip().startswith("#"):
        return range(number, number + 1)
    return range(number, (last if number + 1 == first else number + 1) + 1)


def _is_quiet(finding: Reported, lines: range, codes: list[str]) -> bool:
    return (finding.line or 0) in lines and (not codes or any(_names(finding.rule, c) for c in codes))


def _names(rule: Rule, entry: str) -> bool:
    return rule.code.startswith(entry.upper()) or rule.name == entry
