"""The gateway's store as a command line names it: option, variable, the gateway's configuration, or the usual file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimtab.cli.settings import dirs
from trimtab.gateway.setup import Setup, reading_of
from trimtab.gateway.store.database import Store, open_store

GATEWAY_FILE = "gateway.yaml"


@contextmanager
def opened(address: str | None, config: Path | None) -> Iterator[Store]:
    """The store, whether a gateway runs or not."""
    file = config or dirs().config / GATEWAY_FILE
    if address is None and (config is not None or file.is_file()):
        reading = reading_of(file)
        address = reading.config.store if reading.config is not None else None
    store = open_store(address, Setup(data_dir=dirs().data).default_store)
    try:
        yield store
    finally:
        store.close()
