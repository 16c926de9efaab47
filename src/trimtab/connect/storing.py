"""A file replaced in one step."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from trimtab.errors import HostError
from trimtab.messages import msg

NEW_MODE = 0o600


def digest(data: bytes) -> str:
    """By which a file is known again."""
    return sha256(data).hexdigest()


def replace(file: Path, data: bytes) -> None:
    """Put `data` in place of the file in one step, with its mode; a new one is for its owner alone."""
    new = file.with_name(f".{file.name}.trimtab-{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = file.stat().st_mode & 0o7777 if file.exists() else NEW_MODE
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(data)
                out.flush()
                os.fchmod(out.fileno(), mode)
                os.fsync(out.fileno())
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(
            msg("cannot write {file}: {reason}", file=file, reason=error.strerror),
            hint=msg("Mend the owner or mode of its directory; the file is as it was."),
        ) from error
