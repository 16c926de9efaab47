"""How the difference of two command lines is shown: text for people, JSON (`trimtab.flags/1`) for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.engine import flags
from trimtab.engine.flags import Difference, FlagSpec
from trimtab.messages import Message, msg


def diff_json(found: Difference, notes: Sequence[Message]) -> str:
    """Everything in `found`; names, not whole specs."""
    return json.dumps(
        {
            "schema": "trimtab.flags/1",
            "before": found.before,
            "after": found.after,
            "added": [{"name": f.name, "default": f.default} for f in found.added],
            "removed": [{"name": f.name, "instead": _instead(f.name)} for f in found.removed],
            "renamed": [{"name": s.name, "to": s.to} for s in found.renamed if s.same_value],
            "changed": [
                {"name": c.name, "field": c.field, "before": c.before, "after": c.after} for c in found.changed
            ],
            "variables_added": found.variables_added,
            "variables_removed": found.variables_removed,
            "notes": [str(n) for n in notes],
        },
        indent=2,
    )


def _instead(name: str) -> str | None:
    successor = flags.successor(name)
    return str(successor.message) if successor else None


def diff_text(found: Difference, notes: Sequence[Message], lang: str) -> str:
    """One section a kind of change; renamed flags under removed, with what to write instead."""
    lines = [msg("vLLM {a} -> {b}", a=found.before, b=found.after).text(lang)]
    lines += [f"  {note.text(lang)}" for note in notes]
    lines += _section(msg("removed ({n})", n=len(found.removed)), (_removed(f, lang) for f in found.removed), lang)
    lines += _section(msg("added ({n})", n=len(found.added)), (_added(f, lang) for f in found.added), lang)
    changed = (f"{c.name}  {c.field}: {shown(c.before)} -> {shown(c.after)}" for c in found.changed)
    lines += _section(msg("changed ({n})", n=len(found.changed)), changed, lang)
    for title, names in (
        (msg("variables removed ({n})", n=len(found.variables_removed)), found.variables_removed),
        (msg("variables added ({n})", n=len(found.variables_added)), found.variables_added),
    ):
        lines += _section(title, names, lang)
    return "\n".join(lines)


def _section(title: Message, rows: Iterable[str], lang: str) -> list[str]:
    body = [f"  {row}" for row in rows]
    return ["", title.text(lang), *body] if body else []


def _removed(flag: FlagSpec, lang: str) -> str:
    successor = flags.successor(flag.name)
    return f"{flag.name}  {successor.message.text(lang)}" if successor else flag.name


def _added(flag: FlagSpec, lang: str) -> str:
    default = "" if flag.default is None else msg(" (default {value})", value=shown(flag.default)).text(lang)
    return f"{flag.name}{default}"


def shown(value: Any) -> str:
    """A value as one would write it; long lists are cut."""
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        words = [str(v) for v in value]
        return "[" + ", ".join(words[:8]) + (f", +{len(words) - 8}" if len(words) > 8 else "") + "]"
    return json.dumps(value) if isinstance(value, dict | bool) else str(value)
