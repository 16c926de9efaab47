"""The fix of a log's finding: an edit of the launch command, where that command is known. Not a rule."""

from __future__ import annotations

from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import Fix, Grade


def set_flag(context: LogContext, name: str, value: str | None, grade: Grade = Grade.UNSAFE) -> Fix | None:
    """Give the flag (long name, without dashes before it) this value; None where the launch is not known."""
    return context.launch.set_flag(name, value, grade) if context.launch else None


def remove_flag(context: LogContext, name: str, grade: Grade = Grade.UNSAFE) -> Fix | None:
    """Take the flag out; None where the launch is not known or does not give it."""
    if context.launch is None:
        return None
    use = context.launch.command.last(name)
    return context.launch.remove(use, grade) if use else None
