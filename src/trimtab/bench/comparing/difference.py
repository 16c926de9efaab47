"""Where two texts differ, word by word. Pure."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from trimtab.bench.page import Piece

MOST_WORDS = 3000  # of either side: comparing takes the product of both
_WORD = re.compile(r"\s+|[\u3400-\u9fff]|\w+|[^\w\s]")


def difference(left: str, right: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces; those that the other side lacks are marked. Very long ones are compared by lines."""
    a, b = _WORD.findall(left), _WORD.findall(right)
    if max(len(a), len(b)) > MOST_WORDS:
        a, b = left.splitlines(keepends=True), right.splitlines(keepends=True)
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for pieces, words in ((sides[0], a[a1:a2]), (sides[1], b[b1:b2])):
            if words:
                pieces.append(Piece("".join(words), kind != "equal"))
    return tuple(sides[0]), tuple(sides[1])


def likeness(left: str, right: str) -> float:
    """0 to 1: the share of words that both have in the same order."""
    if left == right:
        return 1.0
    same, _ = difference(left, right)
    kept = sum(len(piece.text) for piece in same if not piece.changed)
    return 2 * kept / max(1, len(left) + len(right))
