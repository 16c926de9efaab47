"""What the words of a command line may name on the disk."""

from __future__ import annotations

from pathlib import Path

from trimtab.errors import HostError
from trimtab.messages import msg


def path_named(text: str) -> Path | None:
    """The path that the words name, there or not; None where no file can have such a name (a whole command, a NUL).

    HostError where a directory above it may not be read.
    """
    try:
        path = Path(text).expanduser()
        path.exists()
    except PermissionError as error:
        raise HostError(msg("cannot read {path}: {reason}", path=text, reason=error.strerror)) from error
    except (OSError, ValueError, RuntimeError):
        return None  # too long, a NUL in it, or the home of nobody
    return path
