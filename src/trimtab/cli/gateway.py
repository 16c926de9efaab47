"""`trimtab gateway`: one key and one URL in front of model servers; `check` judges its configuration before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli import options
from trimtab.cli.settings import dirs, lang

app = typer.Typer(
    invoke_without_command=True, no_args_is_help=False, rich_markup_mode=None,
    help="Serve one key and one URL in front of model servers.",
)  # fmt: skip
FILE = "gateway.yaml"


@app.callback()
def run(
    ctx: typer.Context,
    config: options.GatewayFile = None,
    listen: options.Listen = None,
    workers: options.Workers = 1,
    store: options.StoreUrl = None,
    back_ends: options.BackEndUrls = None,
) -> int:
    """Serve until Ctrl-C or SIGTERM, which lets running requests end; SIGHUP reads the configuration again."""
    if ctx.invoked_subcommand is not None:
        return 0
    from trimtab.cli.gateway_start import start
    from trimtab.gateway.setup import Setup

    usual = dirs().config / FILE
    file = config or (usual if usual.is_file() else None)
    setup = Setup(file, listen, store, tuple(back_ends or ()), dirs().state, dirs().data, dirs().config)
    return start(setup, workers)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A gateway's configuration.")],
    store: options.StoreUrl = None,
    as_json: options.AsJson = False,
) -> int:
    """Judge a configuration: unknown fields, entries that lead nowhere, what is missing on this host, the store."""
    from trimtab.cli.format import gateway as shown
    from trimtab.gateway.checking import check as findings_of
    from trimtab.gateway.setup import Setup, reading_of
    from trimtab.gateway.store.looking import faults

    setup = Setup(data_dir=dirs().data, config_dir=dirs().config)
    findings = findings_of(
        reading_of(file),
        os.environ,
        more=lambda config: faults(config, store, setup.default_store, setup.master_file),
    )
    print(shown.findings_json(file, findings) if as_json else shown.findings_text(file, findings, lang()))
    return int(any(finding.severity == "error" for finding in findings))


@app.command()
def schema() -> int:
    """Print the JSON schema of the configuration, for editors."""
    import msgspec

    from trimtab.gateway.config import schema as schema_of

    print(msgspec.json.format(msgspec.json.encode(schema_of()), indent=2).decode())
    return 0
