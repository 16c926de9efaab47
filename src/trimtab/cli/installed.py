"""The flag table in force: an installed vLLM's own parser's where it is the version asked for, else the shipped one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.cli.settings import dirs, engines_root, lang
from trimtab.engine.command import LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor.present import Present, find_present

if TYPE_CHECKING:
    from trimtab.supervisor.environments import Engine


def table_for(version: str | None, python: Path | None = None) -> FlagTable:
    """The table of `version`; None: that of the vLLM which is installed, or of the newest known where none is."""
    return installed_table(version, python) or FlagTable.for_version(version)


def installed_table(version: str | None, python: Path | None = None) -> FlagTable | None:
    """What the installed vLLM takes; None where there is none, or one of another version.

    `python`: the environment that --engine-python names; UsageError when it holds no vLLM.
    """
    present = _present(python)
    if present is None:
        return None
    if version is not None and not same_release(version, present.version):
        return None
    return table_of(present)


def same_release(asked: str, installed: str) -> bool:
    """Whether `asked` ("0.32", "v0.32.0") names the installed version ("0.32.0")."""
    words = asked.strip().removeprefix("v").partition("+")[0].split(".")
    return words == installed.split(".")[: len(words)]


def table_of(present: Present) -> FlagTable:
    """The table of one environment's own parser, asked now where it was not before, which takes seconds.

    Where it gives no answer: the shipped table of its version, and stderr says why.
    """
    from trimtab.cli.progress import drawn
    from trimtab.engine.flags.dump import from_parser_dump
    from trimtab.supervisor.parser import forget, parser_of

    with drawn(lang()) as show:
        answer = parser_of(present, dirs().cache, os.environ, show)
    if answer.dump is not None:
        try:
            return from_parser_dump(answer.dump)
        except UsageError as error:
            reason: object = error.message
            forget(present, dirs().cache)  # a damaged file of the cache is not read twice
    else:
        reason = answer.reason or msg("it gave no answer in time")
    note = msg(
        "the parser of vLLM {version} under {python} could not be asked, so Trimtab's table is used: {reason}",
        version=present.version,
        python=present.python,
        reason=reason,
    )
    print(note.text(lang()), file=sys.stderr)
    return FlagTable.for_version(present.version, "cpu" if "cpu" in present.metadata_name else "cuda")


def unknown_to(table: FlagTable, command: LaunchCommand) -> list[str]:
    """Flags of the command that an installed vLLM's own parser does not have; [] for a shipped table."""
    return [use.spelling for use in command.flags if table.find(use.spelling) is None] if table.from_engine else []


def _present(python: Path | None) -> Present | None:
    found = find_present(python, os.environ, engines_root())
    if found is not None or python is None:
        return found
    from trimtab.supervisor.environments import find_external

    engine = find_external(python, os.environ, None)  # its packages lie elsewhere: it must tell by itself
    return Present(engine.python, engine.version) if engine else None


def present_of(engine: Engine) -> Present:
    """The same environment as its directories tell, with what a start of it needs."""
    found = find_present(engine.python, {}, engine.python.parent)
    return Present(engine.python, engine.version, found.metadata if found else None, engine.env)
