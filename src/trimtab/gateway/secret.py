"""A text that must not be seen: it shows itself nowhere unless it is asked by name."""

from __future__ import annotations

import hmac
from typing import NoReturn

SHOWN = "***"


class Secret:
    """A key or a password. `reveal` is the only way to its text: printing, formatting, logging and pickling are not."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for the one place that needs it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({SHOWN})"

    def __str__(self) -> str:
        return SHOWN

    def __format__(self, spec: str) -> str:
        return format(SHOWN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not written anywhere")
