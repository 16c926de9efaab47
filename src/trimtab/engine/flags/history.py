"""What all tables together say of a flag: since when and until when, what changed, what came in its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from trimtab import shipped
from trimtab.engine.flags.spec import FlagSpec
from trimtab.engine.flags.table import FlagTable
from trimtab.engine.flags.versions import minors, nearest_table, read
from trimtab.messages import Message

WATCHED = ("kind", "values", "choices", "default", "aliases", "negations", "deprecated", "no_op", "unsupported")


class Span(msgspec.Struct, frozen=True):
    """The minor versions that know a name; `since` None: the oldest table already did; `until` None: still there."""

    since: str | None
    until: str | None

    def holds(self, minor: str) -> bool:
        """Whether a minor that has a table lies in it."""
        order = minors()
        at = order.index(minor)
        return (self.since is None or order.index(self.since) <= at) and (
            self.until is None or at <= order.index(self.until)
        )


class Successor(msgspec.Struct, frozen=True):
    """What to use in place of a flag that is gone: flag, with a value where one is meant; None: nothing is needed."""

    name: str
    to: str | None
    how: str
    zh: str
    same_value: bool = False  # a mere renaming: the value stays as it is
    source: str | None = None  # the file and version of vLLM that shows it

    @property
    def message(self) -> Message:
        """The advice, in both languages."""
        return Message(self.how, {}, self.zh)


class _Entry(msgspec.Struct, frozen=True):
    name: str
    spans: tuple[tuple[str, str | None], ...]
    spellings: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()


class _Summary(msgspec.Struct, frozen=True):
    minors: str
    flags: tuple[_Entry, ...]
    environment: tuple[_Entry, ...]


class Change(msgspec.Struct, frozen=True):
    """One field of a flag that differs from the version before; `field` is a field of FlagSpec."""

    minor: str
    name: str
    field: str
    before: Any
    after: Any


class Difference(msgspec.Struct, frozen=True):
    """What lies between two versions' command lines."""

    before: str
    after: str
    added: tuple[FlagSpec, ...]
    removed: tuple[FlagSpec, ...]
    renamed: tuple[Successor, ...]
    changed: tuple[Change, ...]
    variables_added: tuple[str, ...]
    variables_removed: tuple[str, ...]


def history(name: str) -> Span | None:
    """Since and until which minor a flag or an environment variable was known, None for a name never known."""
    entry = _flags().get(_canonical(name)) or _variables().get(name)
    if entry is None:
        return None
    since, until = entry.spans[0][0], entry.spans[-1][1]
    return Span(None if since == minors()[0] else since, until)


def arity(name: str) -> str | None:
    """How many words a flag takes over all versions ("0", "1", "?", "+"), as the newest that has it says.

    `--no-x` is not a flag of its own (None).
    Where versions differ (`--enable-chunked-prefill` took a value from 0.5 to 0.7): "?". None: no version has it.
    """
    entry = _flags().get(_canonical(name))
    if entry is None:
        return None
    forms = {value for _, value in entry.values}
    if len(forms) == 1:
        return entry.values[-1][1]
    return "?" if "0" in forms else "+"


def takes_value(name: str) -> bool | None:
    """Whether the flag takes a value in the newest version that has it; None: no version has it."""
    found = arity(name)
    return None if found is None else found != "0"


def known_names() -> tuple[str, ...]:
    """Every flag name that any version has or had."""
    return tuple(sorted({entry.name for entry in _flags().values()}))


def known_variables() -> tuple[str, ...]:
    """Every environment variable that any version reads or read."""
    return tuple(sorted(_variables()))


def spelling_of(name: str) -> str | None:
    """The flag's own name for any spelling that some version took, None for a word no version knew."""
    entry = _flags().get(_canonical(name.partition("=")[0].split(".")[0]))
    return entry.name if entry else None


def changes(name: str) -> tuple[Change, ...]:
    """Every change of a flag from one table to the next, oldest first."""
    canonical = _canonical(name)
    found: list[Change] = []
    before: tuple[FlagSpec, str] | None = None
    for minor in minors():
        table = read(minor)
        spec = next((f for f in table.flags if f.name == canonical), None)
        now = (spec, table.engines) if spec else None
        if before is not None and now is not None:
            found += _fields(minor, before, now)
        before = now or before
    return tuple(found)


def diff(before: str, after: str) -> Difference:
    """Everything that changed on the command line between two versions, in either direction."""
    return difference(FlagTable.for_version(before), FlagTable.for_version(after))


def difference(old: FlagTable, new: FlagTable) -> Difference:
    """Everything that changed from one table to the other."""
    was, now = {f.name: f for f in old.flags}, {f.name: f for f in new.flags}
    removed = tuple(was[n] for n in sorted(was.keys() - now.keys()))
    followers = [s for f in removed if (s := successor(f.name)) is not None and s.to and new.find(s.to)]
    minor = nearest_table(new.version)
    changed = [
        c for n in sorted(was.keys() & now.keys()) for c in _fields(minor, (was[n], old.engines), (now[n], new.engines))
    ]
    had, has = {v.name for v in old.environment}, {v.name for v in new.environment}
    return Difference(
        old.source, new.source, tuple(now[n] for n in sorted(now.keys() - was.keys())), removed, tuple(followers),
        tuple(changed), tuple(sorted(has - had)), tuple(sorted(had - has)),
    )  # fmt: skip


def successor(name: str) -> Successor | None:
    """What came in the place of a flag or variable that is gone, None where nothing is recorded."""
    return _successors().get(_canonical(name)) or _successors().get(name)


def _fields(minor: str, before: tuple[FlagSpec, str], now: tuple[FlagSpec, str]) -> list[Change]:
    """What differs between a flag of two tables, each given with the engines of its version."""
    (old, had), (new, has) = before, now
    pairs = [(f, getattr(old, f), getattr(new, f)) for f in WATCHED]
    if old.engine or new.engine:  # that a version has another engine than the one before is no change of the flag
        pairs.append(("engine", old.engine or had, new.engine or has))
    return [Change(minor, new.name, f, a, b) for f, a, b in pairs if a != b]


def _canonical(name: str) -> str:
    if name == "model_tag" or (name.startswith("-") and not name.startswith("--")):
        return name
    return "--" + name.lstrip("-").replace("_", "-")


@cache
def _summary() -> _Summary:
    data = shipped.read("trimtab.engine.flags", "tables/history.json")
    return msgspec.json.decode(data, type=_Summary)


@cache
def _flags() -> Mapping[str, _Entry]:
    found: dict[str, _Entry] = {}
    for entry in _summary().flags:
        found |= dict.fromkeys((s for s in entry.spellings if not s.startswith("--no-")), entry)
    return found | {entry.name: entry for entry in _summary().flags}


@cache
def _variables() -> Mapping[str, _Entry]:
    return {entry.name: entry for entry in _summary().environment}


@cache
def _successors() -> Mapping[str, Successor]:
    data = shipped.read("trimtab.engine.flags", "tables/successors.json")
    return {s.name: s for s in msgspec.json.decode(data, type=tuple[Successor, ...])}
