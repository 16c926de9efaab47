"""`trimtab engine install|list|remove`: the vLLM environments that Trimtab keeps."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from trimtab.cli import settings
from trimtab.cli.format.engine import engine_json, engines_text, installed_text
from trimtab.cli.installed import present_of, table_of
from trimtab.cli.options import AsJson, BasePython, EngineRelease
from trimtab.cli.progress import drawn
from trimtab.cli.settings import engines_root
from trimtab.messages import msg
from trimtab.supervisor.environments import installed
from trimtab.supervisor.environments import remove as remove_engine
from trimtab.supervisor.install import install_cpu, install_cuda
from trimtab.supervisor.requirements import this_host

app = typer.Typer(no_args_is_help=True, help="Install, list and remove vLLM environments.", rich_markup_mode=None)


class Kind(StrEnum):
    """What the engine computes on."""

    cpu = "cpu"
    cuda = "cuda"


@app.command()
def install(
    kind: Annotated[Kind, typer.Argument(help="What it computes on.")],
    version: EngineRelease = None,
    python: BasePython = None,
    as_json: AsJson = False,
) -> int:
    """Install vLLM into an environment of its own."""
    lang = settings.lang()
    with drawn(lang) as show:
        engine = (install_cpu if kind is Kind.cpu else install_cuda)(engines_root(), version, show, this_host(python))
    table_of(present_of(engine))  # asked now, so that no later verb waits for it
    print(engine_json([engine]) if as_json else installed_text(engine, lang))
    return 0


@app.command("list")
def list_engines(as_json: AsJson = False) -> int:
    """The engines that are installed."""
    engines = installed(engines_root())
    print(engine_json(engines) if as_json else engines_text(engines, settings.lang()))
    return 0


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="As `trimtab engine list` shows it, e.g. cpu-0.32.0.")],
    as_json: AsJson = False,
) -> int:
    """Remove an engine's environment; prints those that stay."""
    lang = settings.lang()
    gone = remove_engine(engines_root(), name)
    print(msg("removed {directory}", directory=gone).text(lang), file=sys.stderr)
    left = installed(engines_root())
    print(engine_json(left) if as_json else engines_text(left, lang))
    return 0
