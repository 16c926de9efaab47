"""Which rules a text can concern: told by words without which a rule finds nothing, before any rule is loaded.

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


class Triggers(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule finds nothing in a text with none of these words (in lower case) and none of these HTTP statuses."""

    words: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


def concerned(subject: Subject, words: str, statuses: Collection[int] = ()) -> list[Rule]:
    """The rules of `subject`, by code, that may find something. `words`: all that patterns see, in lower case."""
    known = _triggers()
    return [
        registry.rule(code)
        for code in registry.codes(subject)
        if (own := known.get(code)) is None
        or any(word in words for word in own.words)
        or any(status in statuses for status in own.statuses)
    ]


@cache
def _triggers() -> Mapping[str, Triggers]:
    return msgspec.json.decode(shipped.read("trimtab.rules", FILE), type=dict[str, Triggers])
