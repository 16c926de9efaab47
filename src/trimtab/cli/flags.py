"""`trimtab flags diff A B`: what changed on vLLM's command line between two versions."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli import settings
from trimtab.cli.format.flags import diff_json, diff_text
from trimtab.cli.installed import installed_table
from trimtab.cli.options import AsJson, EnginePython
from trimtab.engine import flags

app = typer.Typer(no_args_is_help=True, help="Compare the command lines of vLLM versions.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Keep `diff` a subcommand."""


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="vLLM version, e.g. 0.10.")],
    after: Annotated[str, typer.Argument(metavar="B", help="vLLM version, e.g. 0.33.")],
    engine_python: EnginePython = None,
    json: AsJson = False,
) -> int:
    """Flags added, removed, renamed or changed from A to B, and environment variables likewise."""
    told = {version: installed_table(version, engine_python) for version in (before, after)}
    on_cpu = any(table is not None and table.build == "cpu" for table in told.values())
    old, new = (told[v] or flags.FlagTable.for_version(v, "cpu" if on_cpu else "cuda") for v in (before, after))
    found = flags.difference(old, new)
    notes = [note for table in (old, new) if (note := table.origin)]
    print(diff_json(found, notes) if json else diff_text(found, notes, settings.lang()))
    return 0
