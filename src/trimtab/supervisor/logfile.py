"""Read a log file from its end, and follow it while it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from trimtab.errors import HostError
from trimtab.messages import msg

_BLOCK = 1 << 16


def tail(path: Path, lines: int) -> tuple[bytes, int]:
    """The last `lines` lines of `path` and the offset after them. HostError when it cannot be read."""
    try:
        with path.open("rb") as file:
            end = position = file.seek(0, os.SEEK_END)
            held = b""
            while position > 0 and held.count(b"\n") <= lines:
                start = max(0, position - _BLOCK)
                file.seek(start)
                held = file.read(position - start) + held
                position = start
    except OSError as error:
        raise HostError(
            msg("cannot read the log {file}: {reason}", file=path, reason=error.strerror),
            hint=msg("A server has a log once its engine was started: trimtab ps --all."),
        ) from error
    kept = held.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), end


def follow(path: Path, offset: int, over: Callable[[], bool], pause: Callable[[], object]) -> Iterator[bytes]:
    """What is appended after `offset`, until `over` says that nothing more will come; `pause` waits between looks.

    When the file is set aside and a new one begun, what is left of the old one comes first, then the new one's.
    """
    file: BinaryIO = path.open("rb")
    try:
        file.seek(offset)
        last = False
        while True:
            chunk = file.read(_BLOCK)
            if chunk:
                yield chunk
                continue
            newer = _newer(path, file)
            if newer is not None:
                while chunk := file.read(_BLOCK):  # what came before it was set aside
                    yield chunk
                file.close()
                file = newer
            elif last:
                return
            else:
                last = over()  # one more look after the end: the last lines may have come between
                if not last:
                    pause()
    finally:
        file.close()


def _newer(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The file that is now at `path`, where it is another than the open one."""
    try:
        now, ours = path.stat(), os.fstat(file.fileno())
        return path.open("rb") if (now.st_dev, now.st_ino) != (ours.st_dev, ours.st_ino) else None
    except FileNotFoundError:
        return None  # set aside, and the new one not there yet
