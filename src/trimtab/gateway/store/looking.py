"""What is wrong with a gateway's store before it is used: nothing in it is changed or made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from trimtab.errors import TrimtabError
from trimtab.gateway.checking import Fault
from trimtab.gateway.config import Config
from trimtab.gateway.store.database import Store, look
from trimtab.gateway.store.providers import master_key, provider_key
from trimtab.messages import Message, msg


def faults(config: Config, address: str | None, default: Path, master_file: Path) -> Iterator[Fault]:
    """Of the store at `address` (else the configuration's, else `default`), and of the provider keys in it."""
    place = ("store",)
    stored = {
        name: entry.key.stored
        for name, entry in config.back_ends.items()
        if entry.key is not None and entry.key.stored is not None
    }
    try:
        store = look(address or config.store, default)
    except TrimtabError as error:
        yield place, error.message, error.hint or msg("Mend its owner or mode, or name another with --store."), True
        return
    if store is None:
        for name in stored:
            what = msg("the key of {name} is to be in the store, which is not made yet", name=name)
            yield ("back_ends", name, "key", "stored"), what, _set(stored[name]), True
        return
    try:
        yield from _keys(store, stored, master_file)
    finally:
        store.close()


def _keys(store: Store, stored: dict[str, str], master_file: Path) -> Iterator[Fault]:
    for name, kept_as in stored.items():
        try:
            provider_key(store, kept_as, partial(master_key, master_file))
        except TrimtabError as error:
            yield ("back_ends", name, "key", "stored"), error.message, error.hint or _set(kept_as), True


def _set(name: str) -> Message:
    return msg("Store it: trimtab keys provider set {name}", name=name)
