"""Flags that a command abbreviates, as argparse lets it: read under their whole names."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.engine.flags import FlagTable


def completed(command: LaunchCommand, table: FlagTable | None = None) -> LaunchCommand:
    """The command with each flag that is the beginning of exactly one flag's name under that name."""
    if all(use.path or not use.spelling.startswith("--") for use in command.flags):
        return command
    known = table or FlagTable.for_version(command.container.version if command.container else None)
    return replace(command, flags=tuple(_whole(use, known) for use in command.flags))


def beginnings(spelling: str, table: FlagTable) -> list[str]:
    """Names (with dashes) of the flags of which this spelling is the beginning."""
    if not spelling.startswith("--") or "." in spelling:
        return []
    start = spelling.partition("=")[0].replace("_", "-")
    spellings = ((s, flag.name) for flag in table.flags for s in flag.spellings)
    return sorted({name for s, name in spellings if s.startswith(start)})


def _whole(use: FlagUse, table: FlagTable) -> FlagUse:
    if use.path or not use.spelling.startswith("--") or table.find(use.spelling) is not None:
        return use
    full = beginnings(use.spelling, table)
    return replace(use, name=full[0].lstrip("-")) if len(full) == 1 and not use.negated else use
