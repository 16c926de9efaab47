"""A log file of bounded size: when it is full it is set aside as .1, older ones as .2 and on, the oldest removed."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

from trimtab.errors import HostError
from trimtab.messages import msg


class RotatingLog:
    """The log of one start, written as it comes. `begun`: its file holds this start's output, not a former one's."""

    def __init__(self, file: Path, most_bytes: int, files: int) -> None:
        self._file, self._most, self._files = file, most_bytes, files
        self._out: io.FileIO | None = None
        self._size, self.begun = 0, False

    def begin(self) -> None:
        """Set a former start's log aside and open the file. HostError when that cannot be; later writes try again."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._begin_anew()
        except OSError as error:
            raise HostError(
                msg("cannot write the log file {file}: {reason}", file=self._file, reason=error.strerror),
                hint=msg("Free the path or set XDG_STATE_HOME to a directory you may write."),
            ) from error

    def write(self, chunk: bytes) -> None:
        """A full disk must not stop the engine, whose output would block: the log loses what does not fit."""
        with suppress(OSError, ValueError):
            if self._out is None or not self._file.exists():  # removed under us: what comes now shall be found
                self._begin_anew()
            if self._size + len(chunk) > self._most and self._size:
                end = chunk.rfind(b"\n") + 1 if self._size < 2 * self._most else len(chunk)
                if end:
                    self._put(chunk[:end])
                    chunk = chunk[end:]
                    self._begin_anew()
            self._put(chunk)

    def close(self) -> None:
        if self._out is not None:
            self._out.close()

    def _put(self, chunk: bytes) -> None:
        assert self._out is not None
        while chunk:
            written = self._out.write(chunk) or 0
            self._size += written
            chunk = chunk[written:]

    def _begin_anew(self) -> None:
        set_aside(self._file, self._files)
        out = _opened(self._file)
        self.close()
        self._out, self._size, self.begun = out, 0, True


def set_aside(file: Path, files: int) -> None:
    """Make room for a new `file`: at most `files` are left with it. What is empty or missing needs no place."""
    if not file.is_file() or not file.stat().st_size:
        return
    for number in range(files - 1, 0, -1):
        older = aside(file, number - 1)
        if older.exists():
            older.replace(aside(file, number))
    file.unlink(missing_ok=True)  # where only one is kept


def aside(file: Path, number: int) -> Path:
    """The name of the `number`th log set aside, the newest first; 0 is the log itself."""
    return file.with_name(f"{file.name}.{number}") if number else file


def _opened(file: Path) -> io.FileIO:
    return open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)
