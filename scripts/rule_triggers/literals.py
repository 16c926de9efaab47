"""Words of which at least one stands in every text that a pattern matches, by the pattern's own parse tree."""

from __future__ import annotations

import re._constants as kind
import re._parser as parser
from collections.abc import Iterable
from typing import Any

LONG = 12
"""From this length on a word is seldom enough: fewer words count then."""
_REPEATS = (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT)


def literals(pattern: str) -> frozenset[str]:
    """The words, in lower case; ValueError for a pattern that matches without any."""
    found = _of_sequence(parser.parse(pattern))
    if found is None:
        raise ValueError(f"no word stands in everything that this pattern matches: {pattern}")
    return found


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """Of parts that all must be there the most telling one's."""
    best: frozenset[str] | None = None
    run = ""
    for op, argument in items:
        letters = _letters(op, argument)
        if letters is not None:
            run += letters
            continue
        best = _better(best, _of_part(op, argument), _word(run))
        run = ""
    return _better(best, _word(run))


def _letters(op: Any, argument: Any) -> str | None:
    """The text that this part is in lower case, whatever matches: one letter, the same large or small, letters in a
    group, or a place, which takes none."""
    if op is kind.LITERAL:
        return chr(argument).lower()
    if op is kind.IN and all(inner is kind.LITERAL for inner, _ in argument):
        letters = {chr(letter).lower() for _, letter in argument}
        return letters.pop() if len(letters) == 1 else None
    if op is kind.SUBPATTERN:
        parts = [_letters(*part) for part in argument[-1]]
        return None if None in parts else "".join(part for part in parts if part)
    return "" if op is kind.AT else None


def _of_part(op: Any, argument: Any) -> frozenset[str] | None:
    if op is kind.SUBPATTERN:
        return _of_sequence(argument[-1])
    if op is kind.ATOMIC_GROUP:
        return _of_sequence(argument)
    if op in _REPEATS and argument[0] >= 1:
        return _of_sequence(argument[2])
    if op is kind.BRANCH:
        ways = [_of_sequence(way) for way in argument[1]]
        return frozenset[str]().union(*(way or () for way in ways)) if all(ways) else None
    return None


def _word(run: str) -> frozenset[str] | None:
    return frozenset([run]) if run else None


def _better(*candidates: frozenset[str] | None) -> frozenset[str] | None:
    return max((c for c in candidates if c), key=_worth, default=None)


def _worth(words: frozenset[str]) -> tuple[int, int, int]:
    shortest = min(map(len, words))
    return min(shortest, LONG), -len(words), shortest
