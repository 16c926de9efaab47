"""A user's configuration file as a document: changed by path, all else (comments, order, blanks) kept as it is."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

import msgspec

from trimtab.errors import UsageError
from trimtab.messages import Message, msg


class Form(StrEnum):
    """The kinds of file; the value is the module that reads and changes it."""

    TOML = "toml"
    YAML = "yaml"
    JSON = "jsonc"  # with comments and commas at the end, where the file has them
    LINES = "lines"  # NAME=value, as in .env and shell files


class Item(msgspec.Struct, frozen=True, tag="item"):
    """A step into a list: the entry whose `field` holds `value`; it is added where there is none."""

    field: str
    value: str


Step = str | Item
Steps = tuple[Step, ...]


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """No value at a path."""


ABSENT: Final = Absent()


class Document(Protocol):
    """One file's text. Values are plain data: str, int, float, bool, None, list, dict."""

    def get(self, path: Steps) -> object:
        """The value at `path`, ABSENT where there is none."""

    def set(self, path: Steps, value: object) -> None:
        """Put `value` at `path`; what is missing on the way is made. UsageError where something else is in the way."""

    def remove(self, path: Steps) -> None:
        """Take the value at `path` away, and what is empty after it; nothing happens where there is none."""

    def text(self) -> str:
        """The whole file."""


class Unreadable(ValueError):
    """The text is not of its form; `reason` names the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InTheWay(ValueError):
    """On the way to a value stands one that is no table or list."""


def opened(form: Form, text: str, file: Path) -> Document:
    """The document of `text`. UsageError naming `file` where the text is not of the form."""
    try:
        document: Document = import_module(f"{__name__}.{form.value}").Document(text)
    except Unreadable as error:
        raise UsageError(
            msg("{file} is not valid {form}: {reason}", file=file, form=form.name, reason=error.reason),
            hint=msg("Mend the file or move it away; nothing was changed."),
        ) from error
    return document


def put(document: Document, path: Steps, value: object, file: Path) -> None:
    """`document.set`, and a UsageError naming `file` where something is in the way."""
    try:
        document.set(path, value)
    except InTheWay as error:
        raise UsageError(
            msg("{file}: cannot set {path}: {what} is no table", file=file, path=shown(path), what=str(error)),
            hint=msg("Mend the file or move it away; nothing was changed."),
        ) from error


def shown(path: Steps) -> str:
    """A path for a person to read."""
    return ".".join(step if isinstance(step, str) else f"[{step.field}={step.value}]" for step in path)


def described(value: object) -> Message | str:
    """A value for a person to read."""
    return msg("nothing") if value is ABSENT else str(value)
