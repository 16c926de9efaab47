"""What the author of a client declares: its files, what is written into them, what is read back, what is printed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from trimtab.connect.documents import ABSENT, Document, Form, Steps, opened
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.errors import HostError, UsageError
from trimtab.messages import Message, msg
from trimtab.rules.rule import Severity

MOST_BYTES = 32 << 20


class Change(msgspec.Struct, frozen=True):
    """One value in a document; `value` ABSENT takes it away. `secret`: it is shown as three stars.

    `theirs`: the client goes on changing it by itself, so that an undo minds no other value there.
    """

    path: Steps
    value: object
    secret: bool = False
    theirs: bool = False


class FileEdit(msgspec.Struct, frozen=True):
    """What a client wants in one of its files."""

    file: Path
    form: Form
    changes: tuple[Change, ...]


class KeyIs(StrEnum):
    """How a client's configuration comes by the key."""

    VARIABLE = "variable"
    WRITTEN = "written"
    COMMAND = "command"
    NONE = "none"


class Trouble(msgspec.Struct, frozen=True):
    """One thing wrong in a client's configuration. `code` is that of the doctor's rule, or of `checking.CODES`."""

    code: str
    severity: Severity
    message: Message
    place: str = ""  # file, and the path in it
    mends: bool = True  # whether --write mends it


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """What a client is set to now. `place` is the file that says so, or the environment; "" where nothing does.

    `model_in_code`: the model id stands in the user's own program, where it is not looked for. `active` is False where
    our entry is there and another one is chosen. `context_tokens` as the configuration has it.
    """

    place: str = ""
    base_url: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()  # further ids that it would send
    key_is: KeyIs = KeyIs.NONE
    key_variable: str = ""
    key: str = ""
    model_in_code: bool = False
    active: bool = True
    context_tokens: int | None = None
    troubles: tuple[Trouble, ...] = ()


class Files:
    """Reads a client's files for --check."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    def document(self, file: Path, form: Form) -> Document | None:
        """The document, None where there is no file. UsageError where it is not of its form, HostError unreadable."""
        text = read_text(file)
        return None if text is None else opened(form, text, file)


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client program. `version` is the one whose package the facts were read in.

    `edits` gives what --write puts into files; None where there is no file, and only the snippet. `read` gives what is
    set now, None where nothing is. `prompt_tokens` and `answer_tokens`: what it sends before the user's first word,
    and what it asks for in one answer.
    """

    name: str
    title: str
    protocol: Protocol
    package: str
    version: str
    with_v1: bool
    snippet: Callable[[Connection], str]
    edits: Callable[[Connection, Surroundings], tuple[FileEdit, ...]] | None = None
    read: Callable[[Files], Present | None] | None = None
    notes: tuple[Message, ...] = ()
    prompt_tokens: int = 0
    answer_tokens: int = 0
    needs_tools: bool = False

    @property
    def needed_tokens(self) -> int:
        """The smallest served context with which it can be used."""
        return self.prompt_tokens + self.answer_tokens

    def base_url(self, connection: Connection) -> str:
        """The base URL as this client wants it."""
        return connection.with_v1 if self.with_v1 else connection.root


def text_at(document: Document | None, path: Steps) -> str | None:
    """The text at `path`; None where there is none, or something else."""
    found = ABSENT if document is None else document.get(path)
    return found if isinstance(found, str) else None


def tokens_at(document: Document | None, path: Steps) -> int | None:
    """The whole number at `path`, also where it is written as text."""
    found = ABSENT if document is None else document.get(path)
    if isinstance(found, str) and found.isdecimal():
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def read_text(file: Path) -> str | None:
    """The file's text with its line ends; None where there is no file. HostError or UsageError naming it otherwise."""
    data = read_bytes(file)
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            msg("{file} is not UTF-8: {reason}", file=file, reason=error.reason),
            hint=msg("Mend the file or move it away; nothing was changed."),
        ) from error


def read_bytes(file: Path) -> bytes | None:
    """The file's bytes; None where there is no file. HostError when it is no file, or cannot be read."""
    try:
        if not file.is_file():
            if not file.exists():
                return None
            raise _unreadable(file, msg("it is no file"))
        with file.open("rb") as opened_file:
            data = opened_file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    if len(data) > MOST_BYTES:
        raise _unreadable(file, msg("it is larger than {size} MiB", size=MOST_BYTES >> 20))
    return data


def _unreadable(file: Path, reason: Message | str) -> HostError:
    return HostError(
        msg("cannot read {file}: {reason}", file=file, reason=reason),
        hint=msg("Mend its owner or mode; nothing was changed."),
    )
