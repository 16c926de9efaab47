"""Text in columns of a terminal, where a Chinese character takes two."""

from __future__ import annotations


def columns(text: str) -> int:
    """Width on a terminal."""
    return sum(2 if ord(c) > 0x2E7F else 1 for c in text)


def padded(text: str, width: int) -> str:
    """With spaces behind it, up to `width` columns."""
    return text + " " * (width - columns(text))
