"""`trimtab flags diff A B`: what changed on vLLM's command line between two versions."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli import settings
from trimtab.cli.format.flags import diff_json, diff_text
from trimtab.cli.options import AsJson
from trimtab.engine import flags

app = typer.Typer(no_args_is_help=True, help="Compare the command lines of vLLM versions.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Keep `diff` a subcommand."""


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="vLLM version, e.g. 0.10.")],
    after: Annotated[str, typer.Argument(metavar="B", help="vLLM version, e.g. 0.33.")],
    json: AsJson = False,
) -> int:
    """Flags added, removed, renamed or changed from A to B, and environment variables likewise."""
    found = flags.diff(before, after)
    notes = [note for v in (before, after) if (note := flags.FlagTable.for_version(v).note)]
    print(diff_json(found, notes) if json else diff_text(found, notes, settings.lang()))
    return 0
