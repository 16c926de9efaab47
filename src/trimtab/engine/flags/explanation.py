"""Everything known of one flag, variable or term, brought together from tables, history and our own words."""

from __future__ import annotations

import msgspec

from trimtab.engine.flags.about import About, Term, about, term
from trimtab.engine.flags.history import Change, Span, Successor, changes, history, known_names, spelling_of, successor
from trimtab.engine.flags.spec import BatchDefault, EnvSpec, FlagSpec
from trimtab.engine.flags.table import FlagTable, minors
from trimtab.engine.flags.versions import read


class Explanation(msgspec.Struct, frozen=True):
    """One subject; `spec` is the flag as the table has it, or as it last was (then `present` is False)."""

    name: str
    table: FlagTable
    present: bool
    spec: FlagSpec | None = None
    variable: EnvSpec | None = None
    term: Term | None = None
    words: About | None = None
    span: Span | None = None
    successor: Successor | None = None
    changes: tuple[Change, ...] = ()
    batch: tuple[BatchDefault, ...] = ()


def explain(subject: str, table: FlagTable) -> Explanation | None:
    """What is known of a flag in any spelling, an environment variable or a term; None for what no version knows."""
    spec = table.find(subject)
    name = spec.name if spec else spelling_of(subject)
    if name is not None and name in known_names():
        return Explanation(
            name, table, spec is not None, spec or _last(name), None, None, about(name), history(name),
            successor(name), changes(name), _batch(name, table),
        )  # fmt: skip
    variable = table.variable(subject.upper())
    if variable or history(subject.upper()):
        return Explanation(
            subject.upper(), table, variable is not None, variable=variable, words=about(subject.upper()),
            span=history(subject.upper()), successor=successor(subject.upper()),
        )  # fmt: skip
    found = term(subject)
    return Explanation(found.name, table, True, term=found) if found else None


def _last(name: str) -> FlagSpec | None:
    for minor in reversed(minors()):
        for flag in read(minor).flags:
            if flag.name == name:
                return flag
    return None


def _batch(name: str, table: FlagTable) -> tuple[BatchDefault, ...]:
    return table.batch if name in ("--max-num-seqs", "--max-num-batched-tokens") else ()
