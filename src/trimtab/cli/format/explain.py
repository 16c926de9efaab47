"""How an explanation is shown: text for people, JSON (`trimtab.explain/1`) for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.cli.format.flags import shown
from trimtab.engine.flags import BatchDefault, FlagSpec, FlagTable
from trimtab.engine.flags.about import About, Words, short_list
from trimtab.engine.flags.explanation import Explanation
from trimtab.engine.flags.generation import meanings
from trimtab.messages import Message, msg
from trimtab.rules.companions import Companions
from trimtab.rules.rule import Rule

GROUPS = {
    "model": msg("Model loading"),
    "memory": msg("Memory"),
    "concurrency": msg("Concurrency"),
    "parallel": msg("Parallelism"),
    "service": msg("Service"),
}


def explanation_text(found: Explanation, beside: Companions, lang: str) -> str:
    """A heading line, then one labelled line a fact."""
    return "\n".join(line.text(lang) for line in _lines(found, beside))


def _lines(found: Explanation, beside: Companions) -> Iterator[Message]:
    yield msg("{name}  (vLLM {version})", name=found.name, version=found.table.version)
    if found.table.origin:
        yield _row(msg("note"), found.table.origin)
    if not found.present and found.span:
        yield _row(msg("gone"), msg("last known in vLLM {until}", until=found.span.until))
    if found.successor and not found.present:
        yield _row(msg("instead"), found.successor.message)
    if found.term:
        yield _row(msg("what"), found.term.what.message)
        if found.term.flags:
            yield _row(msg("flags"), ", ".join(found.term.flags))
    if found.words:
        yield from _words(found.words, beside)
    if found.spec:
        yield from _spec(found.spec, found.batch)
        if found.present:
            for meaning in meanings(found.spec, found.table.engines):
                yield _row(msg("engine"), meaning)
    if found.variable:
        yield _row(msg("type"), found.variable.kind)
        yield _row(msg("default"), shown(found.variable.default))
    yield from _history(found)


def _row(label: Message, value: object) -> Message:
    return msg("  {label}: {value}", label=label, value=value)


def _words(words: About, beside: Companions) -> Iterator[Message]:
    yield _row(msg("what"), words.what.message)
    if words.advice:
        yield _row(msg("advice"), words.advice.message)
    for trap in words.traps:
        yield _row(msg("trap"), trap.message)
    if beside.needs:
        yield _row(msg("needs"), ", ".join(beside.needs))
    others = [name for name in words.goes_with if name not in beside.needs]
    if others:
        yield _row(msg("goes with"), ", ".join(others))
    if words.excludes or beside.excludes:
        yield _row(msg("excludes"), ", ".join(dict.fromkeys((*words.excludes, *beside.excludes))))


def _spec(spec: FlagSpec, batch: tuple[BatchDefault, ...]) -> Iterator[Message]:
    yield _row(msg("group"), spec.group or "-")
    yield _row(msg("type"), spec.kind if spec.values in ("0", "1") else f"{spec.kind} ({spec.values})")
    if spec.choices:
        yield _row(msg("known values") if spec.open else msg("values"), ", ".join(str(c) for c in spec.choices))
    if spec.keys:
        yield _row(msg("keys"), ", ".join(spec.keys))
    if batch:
        for row in batch:
            yield _row(msg("default"), _batch(row, spec))
    else:
        yield _row(msg("default"), shown(spec.default))
    if len(spec.spellings) > 1:
        yield _row(msg("also"), ", ".join(spec.spellings[1:]))
    if spec.deprecated:
        removal = msg("yes, to be removed in {version}", version=spec.removal) if spec.removal else msg("yes")
        yield _row(msg("deprecated"), removal)
    if spec.no_op:
        yield _row(msg("effect"), msg("none: it is accepted and ignored"))


def _batch(row: BatchDefault, spec: FlagSpec) -> Message:
    value = getattr(row, spec.key.replace("-", "_"))
    if row.card:
        return msg("{value} ({entry}, {card})", value=value, entry=row.entry, card=row.card)
    return msg("{value} ({entry}, from {gib} GiB a card)", value=value, entry=row.entry, gib=row.from_gib)


def _history(found: Explanation) -> Iterator[Message]:
    if found.span:
        since = found.span.since or msg("0.4 or earlier")
        until = found.span.until or msg("today")
        yield _row(msg("known"), msg("{since} to {until}", since=since, until=until))
    for change in found.changes:
        yield msg(
            "    {minor}  {field}: {before} -> {after}",
            minor=change.minor, field=change.field, before=shown(change.before), after=shown(change.after),
        )  # fmt: skip


def explanation_json(found: Explanation, beside: Companions) -> str:
    """All fields; texts in both languages."""
    return json.dumps(
        {
            "schema": "trimtab.explain/1",
            "name": found.name,
            "vllm": found.table.version,
            "present": found.present,
            "engines": found.table.engines.split(),
            "spec": msgspec.to_builtins(found.spec),
            "variable": msgspec.to_builtins(found.variable),
            "about": msgspec.to_builtins(found.words or found.term),
            "needs": beside.needs,
            "excludes": beside.excludes,
            "known": msgspec.to_builtins(found.span),
            "instead": msgspec.to_builtins(found.successor),
            "default_by_card": msgspec.to_builtins(found.batch),
            "changes": [
                {"minor": c.minor, "field": c.field, "before": c.before, "after": c.after} for c in found.changes
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def overview_text(table: FlagTable, lang: str) -> str:
    """The short list by group, each with its default and our advice; then how to ask for more."""
    lines: list[str] = []
    group = None
    for entry in short_list():
        if entry.article != group:
            group = entry.article
            lines += ["", GROUPS[str(group)].text(lang)]
        lines.append(f"  {entry.name:<30} {_default(entry, table, lang)}")
        lines += [f"      {_said(entry).message.text(lang)}"]
    return "\n".join(
        [*lines[1:], "", msg("More on one: trimtab explain FLAG. All changes: trimtab flags diff A B.").text(lang)]
    )


def _default(entry: About, table: FlagTable, lang: str) -> str:
    spec = table.find(entry.name)
    if spec is None:
        return msg("not in vLLM {version}", version=table.version).text(lang)
    rows = table.batch if spec.default is None else ()
    key = spec.key.replace("-", "_")
    sizes = [size for row in rows if row.entry == "server" and isinstance(size := getattr(row, key, None), int)]
    if len(set(sizes)) > 1:
        return msg("default {least} to {most}, by the card", least=min(sizes), most=max(sizes)).text(lang)
    return msg("default {value}", value=shown(table.default(entry.name))).text(lang)


def _said(entry: About) -> Words:
    return entry.advice or entry.what


def overview_json(table: FlagTable) -> str:
    """The short list with defaults."""
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "group": entry.article,
            "default": table.default(entry.name),
            "present": table.find(entry.name) is not None,
            "advice": msgspec.to_builtins(_said(entry)),
        }
        for entry in short_list()
    ]
    return json.dumps(
        {"schema": "trimtab.explain/1", "vllm": table.version, "flags": rows}, indent=2, ensure_ascii=False
    )


def rule_json(rule: Rule, page: str) -> str:
    """A rule's head and its page in Markdown."""
    head = {"schema": "trimtab.explain/1", "code": rule.code, "name": rule.name, "severity": rule.severity.value}
    return json.dumps({**head, "page": page}, indent=2, ensure_ascii=False)
