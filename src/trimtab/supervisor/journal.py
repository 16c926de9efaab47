"""What happened to one server: JSON lines that are only ever appended; status and reports are read from it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trimtab.errors import HostError
from trimtab.messages import Message, msg, packed, unpacked

FILE = "journal.jsonl"
SERVING, LAUNCH, STEP, PLAN = "serving", "launch", "step", "plan"


_FREE = msg("Free the path or set XDG_STATE_HOME to a directory you may write.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """HostError naming what could not be written of a server's state, in place of an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise HostError(_refused(path, error), hint=_FREE) from error


def _refused(path: Path, error: OSError) -> Message:
    return msg(
        "cannot write to {directory}: {reason}",
        directory=error.filename2 or error.filename or path,
        reason=error.strerror,
    )


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened.

    `what`: `launch` (the command and all that is needed to start it again), `plan` (what it was made from, as text),
    `state`, `log` (a line that matters), `signal`, `exited`, `diagnosis`, `step` (a parameter changed, before and
    after), `serving` (ready and checked), `cards` (that stay full), `event` (a listener that could not be told),
    `unwritten` (what the disk did not take).
    """

    at: float  # seconds since the epoch
    what: str
    state: str = ""
    previous: str = ""
    reason: str = ""  # in English
    told: dict[str, Any] = {}  # the same as a template with values, for a reader of another language
    data: dict[str, Any] = {}

    @property
    def said(self) -> Message:
        """The reason, to be shown in the reader's language."""
        return unpacked(self.told) or msg("{line}", line=self.reason)


class Journal:
    """Appends entries; each is one write, so that a crash can tear only the last line.

    What the disk does not take, full or read-only, is kept in memory and written, in order, as soon as it does.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        self._unwritten, self.refusal = b"", ""  # why the disk took nothing, the last time
        with writing(self.path):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            size = os.fstat(self._fd).st_size
            if size and os.pread(self._fd, 1, size - 1) != b"\n":  # a torn line stays alone on its line
                self._unwritten = b"\n"

    @property
    def is_behind(self) -> bool:
        """Whether entries wait for room on the disk."""
        return bool(self._unwritten)

    def append(self, what: str, reason: Message | str = "", **fields: Any) -> Entry:
        """Write one entry and force it to the disk."""
        told = packed(reason) if isinstance(reason, Message) else {}
        entry = Entry(at=time.time(), what=what, reason=str(reason), told=told, **fields)
        self._unwritten += msgspec.json.encode(entry) + b"\n"
        self.catch_up()
        return entry

    def catch_up(self) -> None:
        """Write what waits, as far as the disk takes it."""
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(self._fd, self._unwritten) :]
            os.fsync(self._fd)
        except OSError as error:  # a disk that is full, read-only or broken must not end a server
            self.refusal = error.strerror or str(error)

    def close(self) -> None:
        self.catch_up()
        os.close(self._fd)


def read_journal(directory: Path) -> Iterator[Entry]:
    """The entries of `directory`'s journal, oldest first; lines torn by a crash are left out."""
    path = directory / FILE
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                yield entry


def _entry(line: bytes) -> Entry | None:
    try:
        return msgspec.json.decode(line, type=Entry)
    except msgspec.DecodeError:
        return None
