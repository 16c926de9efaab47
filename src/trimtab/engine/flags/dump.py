"""Reads what an installed vLLM's own parser says of itself; the script that makes it say so is run by other rooms."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab import shipped
from trimtab.engine.flags.spec import Accepts, FlagSpec, TableFile
from trimtab.engine.flags.table import Build, FlagTable
from trimtab.errors import UsageError
from trimtab.messages import msg

DUMP_SCRIPT = shipped.read("trimtab.engine.flags", "dump_parser.txt").decode()
"""Python text for the engine's own interpreter: prints one line of JSON, for `from_parser_dump`."""


class Dump(msgspec.Struct, frozen=True):
    """What the script prints."""

    version: str
    flags: tuple[dict[str, Any], ...]


def from_parser_dump(data: bytes | str, build: Build = "cuda") -> FlagTable:
    """The table of an installed vLLM: its parser's flags win, what a parser does not tell is the version's table's.

    UsageError when `data` is not the script's output.
    """
    try:
        dump = msgspec.json.decode(data, type=Dump)
        told = [msgspec.convert(flag, FlagSpec, strict=False) for flag in dump.flags]
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError(
            msg("not the output of the parser script: {reason}", reason=error),
            hint=msg("Run the script with the Python of the environment that holds vLLM."),
        ) from error
    table = FlagTable.for_version(dump.version, build)
    flags = tuple(_merged(flag, table.find(flag.name)) for flag in told)
    return FlagTable(
        dump.version, dump.version, build, table.accepts, flags, table.environment, table.batch, table.unknown_newer,
        table.older, None, True,
    )  # fmt: skip


def _merged(told: FlagSpec, known: FlagSpec | None) -> FlagSpec:
    if known is None or known.name != told.name:
        return told
    return msgspec.structs.replace(
        told,
        kind=known.kind if told.values == known.values else told.kind,
        choices=told.choices or known.choices,
        open=known.open and not told.choices,
        group=known.group,
        config=known.config,
        keys=known.keys,
        deprecated=known.deprecated or told.deprecated,
        removal=known.removal,
        no_op=known.no_op,
        entry=known.entry,
    )


__all__ = ["DUMP_SCRIPT", "Accepts", "Dump", "TableFile", "from_parser_dump"]
