"""What a rule looks for: it is run over a text without a word, and what it asks for meanwhile is written down.

A rule is a pure function of its context. If over the empty text it asks for patterns and statuses alone, then over any
text in which none of them is found it takes the same way, and finds nothing there either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.engine.logs import read_log
from trimtab.rules.client.context import ClientContext
from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import Rule, Subject

ONE_PATTERN, PATTERNS, STATUSES = ("find", "framed", "last"), ("first", "said"), "with_status"
THE_SAME_OF_EVERY_TEXT = ("probed", "evidence", "answer", "troubled", "fault")
"""What a client's context answers alike whatever the text holds: no endpoint was asked."""


class _Log(LogContext):
    absent = frozenset[str]()


class _Client(ClientContext):
    absent = frozenset[str]()


class Listener:
    """Stands before a context: `patterns` and `statuses` are what it was asked for, `more` what else was looked at."""

    def __init__(self, context: LogContext | ClientContext) -> None:
        self._context = context
        self.patterns: list[str] = []
        self.statuses: list[int] = []
        self.more: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._context, name)
        if name in (*ONE_PATTERN, *PATTERNS, STATUSES):
            return self._noting(name, value)
        if name not in THE_SAME_OF_EVERY_TEXT:
            self.more.append(name)
        return value

    def _noting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            if name == STATUSES:
                self.statuses += arguments
            else:
                self.patterns += arguments[:1] if name in ONE_PATTERN else arguments
            return method(*arguments, **options)

        return noted


def listen(rule: Rule) -> Listener | None:
    """What the rule asks for in an empty text; None where that is more than patterns and statuses."""
    empty = _Log(read_log([])) if rule.subject is Subject.LOG else _Client()
    listener = Listener(empty)
    found = list(rule.check(listener))
    return None if found or listener.more else listener
