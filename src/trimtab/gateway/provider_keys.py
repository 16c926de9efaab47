"""The providers' keys, from where the configuration says that they are; they are held in memory alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trimtab.errors import HostError, UsageError
from trimtab.gateway.config import Config, KeySource
from trimtab.gateway.secret import Secret
from trimtab.messages import msg

Stored = Callable[[str], Secret]  # the provider key that the store keeps under a name


def secrets_of(config: Config, stored: Stored) -> dict[str, Secret]:
    """The keys by back end. UsageError or HostError when the place of one does not give it."""
    keyed = ((name, entry.key) for name, entry in config.back_ends.items())
    return {name: secret_of(name, key, stored) for name, key in keyed if key is not None}


def secret_of(name: str, key: KeySource, stored: Stored) -> Secret:
    """A provider's key, from where its entry says. UsageError or HostError when there is none; never with the key."""
    if key.env is not None:
        found = os.environ.get(key.env, "").strip()
        if not found:
            raise UsageError(
                msg("the key of {name} is in ${variable}, which is not set", name=name, variable=key.env),
                hint=msg("Set it where the gateway is started."),
            )
        return Secret(found)
    if key.file is not None:
        try:
            return Secret(Path(key.file).read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise HostError(msg("{file} cannot be read: {reason}", file=key.file, reason=reason)) from error
    return stored(key.stored or "")


class StoredKeys:
    """Keys of the store, each read once: a store that cannot be reached keeps nobody from what is known already."""

    def __init__(self, read: Stored) -> None:
        self._read = read
        self._known: dict[str, Secret] = {}

    def __call__(self, name: str) -> Secret:
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]
