"""What the words of a command line may name on the disk."""

from __future__ import annotations

from pathlib import Path


def path_named(text: str) -> Path | None:
    """The path that the words name, there or not; None where no file can have such a name (a whole command, a NUL)."""
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, ValueError, RuntimeError):
        return None  # too long, a NUL in it, or the home of nobody
    return path
