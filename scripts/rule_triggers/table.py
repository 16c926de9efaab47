"""The table itself: every rule on texts with its patterns and statuses, as JSON with one rule a line."""

from __future__ import annotations

import json

from rule_triggers.listening import listen
from rule_triggers.literals import literals
from trimtab.rules import registry
from trimtab.rules.rule import Rule, Subject


def table() -> str:
    """The text of triggers.json."""
    rules = [rule for subject in (Subject.LOG, Subject.CLIENT) for rule in registry.rules(subject)]
    rows = [f"{json.dumps(rule.code)}: {row}" for rule in rules if (row := _row(rule)) is not None]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _row(rule: Rule) -> str | None:
    asked = listen(rule)
    if asked is None:
        return None
    patterns = {pattern: sorted(literals(pattern)) for pattern in asked.patterns}
    statuses = {"statuses": sorted(set(asked.statuses))} if asked.statuses else {}
    return json.dumps({"patterns": patterns, **statuses}, ensure_ascii=False)
