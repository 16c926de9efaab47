"""`trimtab keys provider`: keys of providers, kept encrypted in the gateway's store."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from trimtab.cli import options
from trimtab.cli.format import keys as shown
from trimtab.cli.keys_store import opened
from trimtab.cli.settings import dirs, lang
from trimtab.errors import UsageError
from trimtab.gateway.secret import Secret
from trimtab.gateway.setup import Setup
from trimtab.gateway.store.providers import (
    all_providers,
    master_key,
    put_provider,
    read_private,
    remove_provider,
)
from trimtab.messages import msg

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keys of providers, encrypted in the store.")


@app.command("set")
def set_key(
    name: options.ProviderName,
    variable: options.FromVariable = None,
    file: options.FromFile = None,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Keep a provider's key, from a variable, a file or standard input; the command line takes none."""
    key = _key(variable, file)
    master = master_key(Setup(config_dir=dirs().config).master_file, make=True)
    with opened(store, config) as to:
        put_provider(to, name, key, master)
        kept = all_providers(to)
    print(shown.providers_json(kept) if as_json else shown.providers_text(kept, lang()))
    return 0


@app.command("list")
def list_names(
    store: options.StoreUrl = None, config: options.GatewayFile = None, as_json: options.AsJson = False
) -> int:
    """The names under which keys are kept."""
    with opened(store, config) as source:
        kept = all_providers(source)
    print(shown.providers_json(kept) if as_json else shown.providers_text(kept, lang()))
    return 0


@app.command()
def remove(
    name: options.ProviderName,
    store: options.StoreUrl = None,
    config: options.GatewayFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Forget a provider's key; prints the names that stay."""
    with opened(store, config) as to:
        remove_provider(to, name)
        kept = all_providers(to)
    print(shown.providers_json(kept) if as_json else shown.providers_text(kept, lang()))
    return 0


def _key(variable: str | None, file: Path | None) -> Secret:
    if variable is not None and file is not None:
        raise UsageError(msg("the key cannot come from a variable and a file"), hint=msg("Name one of them."))
    if variable is not None:
        if variable not in os.environ:
            raise UsageError(msg("the variable {name} is not set", name=variable), hint=msg("Export it before."))
        return Secret(os.environ[variable].strip())
    if file is not None:
        return read_private(file)
    if sys.stdin.isatty():
        from getpass import getpass

        return Secret(getpass(msg("Key (it is not shown): ").text(lang())).strip())
    return Secret(sys.stdin.read().strip())
