"""Reads what an installed vLLM's own parser says of itself; the script that makes it say so is run by other rooms."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab import shipped
from trimtab.engine.flags.spec import EnvSpec, FlagSpec
from trimtab.engine.flags.table import Build, FlagTable
from trimtab.errors import UsageError
from trimtab.messages import msg

MARK = '{"version": '
"""How the line of the script's output begins that `from_parser_dump` reads; warnings may stand around it."""


class Dump(msgspec.Struct, frozen=True):
    """What the script prints. `serve`: flags of `vllm serve` alone are among them; variables None: it knows none."""

    version: str
    flags: tuple[dict[str, Any], ...]
    device: str = ""
    serve: bool = False
    environment: tuple[str, ...] | None = None


def dump_script() -> str:
    """Python text for the engine's own interpreter: prints one line of JSON, for `from_parser_dump`."""
    return shipped.read("trimtab.engine.flags", "dump_parser.txt").decode()


def from_parser_dump(data: bytes | str, build: Build | None = None) -> FlagTable:
    """The table of an installed vLLM: its parser's flags win, what a parser does not tell is the version's table's.

    `build` None: as the engine says of its device. UsageError when `data` is not the script's output.
    """
    try:
        dump = msgspec.json.decode(data, type=Dump)
        told = [msgspec.convert(flag, FlagSpec, strict=False) for flag in dump.flags]
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError(
            msg("not the output of the parser script: {reason}", reason=error),
            hint=msg("Run the script with the Python of the environment that holds vLLM."),
        ) from error
    build = build or ("cpu" if dump.device == "cpu" else "cuda")
    version = dump.version.partition("+")[0]
    table = FlagTable.for_version(version, build)
    flags = [_merged(flag, table.find(flag.name)) for flag in told]
    if not dump.serve:
        names = {flag.name for flag in flags}
        flags += [flag for flag in table.flags if flag.entry == "serve" and flag.name not in names]
    return FlagTable(
        version, dump.version, build, table.accepts, tuple(flags), _variables(dump.environment, table), table.batch,
        table.unknown_newer, table.older, None, True, table.engines,
    )  # fmt: skip


def _merged(told: FlagSpec, known: FlagSpec | None) -> FlagSpec:
    if known is None or known.name != told.name:
        return told
    same = told.values == known.values
    return msgspec.structs.replace(
        known,
        kind=known.kind if same else told.kind,
        values=told.values,
        aliases=told.aliases,
        negations=told.negations,
        choices=told.choices or known.choices,
        open=known.open and not told.choices,
        default=told.default,
        entry=told.entry or known.entry,
    )


def _variables(told: tuple[str, ...] | None, table: FlagTable) -> tuple[EnvSpec, ...]:
    if told is None:
        return table.environment
    known = {variable.name: variable for variable in table.environment}
    return tuple(known.get(name) or EnvSpec(name) for name in told)
