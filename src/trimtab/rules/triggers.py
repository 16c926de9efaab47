"""Which patterns and which rules a text can concern: told by words, before a pattern is compiled or a rule loaded.

`triggers.json` is made by `scripts/docs` out of the rules themselves (`scripts/rule_triggers`); a rule that it does not
name is run whatever the text holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import msgspec

from trimtab import shipped
from trimtab.rules import registry
from trimtab.rules.rule import Rule, Subject

FILE = "triggers.json"


class Triggers(msgspec.Struct, frozen=True):
    """What a rule finds nothing without: one of these patterns, or of these HTTP statuses.

    A pattern stands with words, in lower case, of which one is in every text that it matches.
    """

    patterns: dict[str, tuple[str, ...]]
    statuses: tuple[int, ...] = ()


def absent(subject: Subject, text: str) -> frozenset[str]:
    """Patterns of the subject's rules that match nowhere in `text`, which is in lower case."""
    return frozenset(
        pattern
        for triggers in _of(subject).values()
        for pattern, words in triggers.patterns.items()
        if not any(word in text for word in words)
    )


def concerned(subject: Subject, absent: frozenset[str], statuses: Collection[int] = ()) -> list[Rule]:
    """The rules of `subject`, by code, that may find something where these patterns match nowhere."""
    known = _of(subject)
    return [
        registry.rule(code)
        for code in registry.codes(subject)
        if (own := known.get(code)) is None
        or not absent.issuperset(own.patterns)
        or any(status in statuses for status in own.statuses)
    ]


def _of(subject: Subject) -> Mapping[str, Triggers]:
    return {code: triggers for code, triggers in _all().items() if code.startswith(subject.value)}


@cache
def _all() -> Mapping[str, Triggers]:
    return msgspec.json.decode(shipped.read("trimtab.rules", FILE), type=dict[str, Triggers])
