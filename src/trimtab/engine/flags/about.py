"""What flags do, in our words, and what is worth knowing of the important ones.

Written by hand: about.json on the important flags and on terms, summaries.json one sentence on every other name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from trimtab import shipped
from trimtab.messages import Message


class Words(msgspec.Struct, frozen=True):
    """One text in both languages."""

    en: str
    zh: str

    @property
    def message(self) -> Message:
        """To be shown in the reader's language."""
        return Message(_plain(self.en), {}, _plain(self.zh))


class About(msgspec.Struct, frozen=True):
    """One flag: what it does; advice and why; flags it goes with and excludes; traps."""

    name: str
    what: Words
    advice: Words | None = None
    traps: tuple[Words, ...] = ()
    goes_with: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    article: str | None = (
        None  # the group it stands in on the short list: model, memory, concurrency, parallel, service
    )


class Term(msgspec.Struct, frozen=True):
    """A word of the trade that is no flag. `also`: its other names, in both languages."""

    name: str
    what: Words
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class _Catalogue(msgspec.Struct, frozen=True):
    flags: tuple[About, ...]
    terms: tuple[Term, ...]


def about(name: str) -> About | None:
    """Our words on a flag (name with its dashes) or an environment variable, None for what no table knows."""
    words = _summaries().get(name)
    return _flags().get(name) or (About(name, words) if words else None)


def term(name: str) -> Term | None:
    """Our words on a term under any of its names, in any case and with spaces or dashes."""
    return _terms().get(_plain_name(name))


def term_names() -> tuple[str, ...]:
    """Every term, under its first name."""
    return tuple(sorted(t.name for t in _catalogue().terms))


def short_list() -> tuple[About, ...]:
    """The flags that decide most launches, by group, in reading order."""
    return tuple(entry for entry in _catalogue().flags if entry.article)


def _plain_name(name: str) -> str:
    return name.lower().replace("-", " ").replace("_", " ").strip()


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@cache
def _catalogue() -> _Catalogue:
    data = shipped.read("trimtab.engine.flags", "about.json")
    return msgspec.json.decode(data, type=_Catalogue)


@cache
def _flags() -> Mapping[str, About]:
    return {entry.name: entry for entry in _catalogue().flags}


@cache
def _terms() -> Mapping[str, Term]:
    return {_plain_name(name): entry for entry in _catalogue().terms for name in (entry.name, *entry.also)}


@cache
def _summaries() -> Mapping[str, Words]:
    return msgspec.json.decode(shipped.read("trimtab.engine.flags", "summaries.json"), type=dict[str, Words])
