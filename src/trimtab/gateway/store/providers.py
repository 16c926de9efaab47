"""Keys of providers, encrypted in the store; what opens them is in the environment or a file, never beside them."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken

from trimtab.errors import HostError, UsageError
from trimtab.gateway.secret import Secret
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store
from trimtab.messages import msg

MASTER = "TRIMTAB_MASTER_KEY"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Provider(msgspec.Struct, frozen=True):
    """A provider whose key the store holds."""

    name: str
    created: float


def master_key(file: Path, environ: Mapping[str, str] = os.environ, *, make: bool = False) -> Secret:
    """The key that opens the others: TRIMTAB_MASTER_KEY, else the file, which `make` makes where it is not there.

    HostError when there is none, or when others than the file's owner may read it.
    """
    text = environ.get(MASTER, "").strip()
    if not text and make and not file.exists():
        _write(file, Fernet.generate_key())
    if not text:
        text = read_private(file).reveal()
    try:
        Fernet(text)
    except ValueError as error:
        raise HostError(
            msg("the master key is none: it has to be 32 bytes in URL-safe base64"),
            hint=msg("Take the one that the provider keys were stored with, from {name} or {file}.", name=MASTER,
                     file=file),
        ) from error  # fmt: skip
    return Secret(text)


def read_private(file: Path) -> Secret:
    """The text of a file that holds a secret. HostError when it cannot be read or others may read it."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(
            msg("cannot read {path}: {reason}", path=file, reason=getattr(error, "strerror", None) or "no text"),
            hint=msg("Check that the file is there and belongs to the user who runs Trimtab."),
        ) from error
    if mode & 0o077:
        raise HostError(
            msg("{file} holds a secret and others may read it: its mode is {mode}", file=file, mode=f"{mode:03o}"),
            hint=msg("Make it its owner's alone: chmod 600 {file}", file=file),
        )
    return Secret(text)


def put_provider(store: Store, name: str, key: Secret, master: Secret) -> None:
    """Keep a provider's key; gateways take it within a second."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            msg("{name} cannot be the name of a provider", name=repr(name)),
            hint=msg("Take up to 64 letters, digits, dots, dashes and underscores."),
        )
    if not key or any(ord(character) < 33 or ord(character) > 126 for character in key.reveal()):
        raise UsageError(
            msg("the key is empty or holds blanks or characters that no key has"),
            hint=msg("Give it alone, without quotes: printf %s \"$KEY\" | trimtab keys provider set {name}", name=name),
        )  # fmt: skip
    sealed = Fernet(master.reveal()).encrypt(key.reveal().encode()).decode()
    _put(store, name, sealed)


def provider_key(store: Store, name: str, master: Callable[[], Secret]) -> Secret:
    """A provider's key, opened with `master`'s, which is asked for once it is needed.

    UsageError when the store has none, HostError when the master key is not there or does not open it.
    """
    with store.reading() as connection:
        chosen = sa.select(tables.providers.c.sealed).where(tables.providers.c.name == name)
        sealed = connection.execute(chosen).scalar_one_or_none()
    if not sealed:
        raise _unknown(store, name)
    try:
        return Secret(Fernet(master().reveal()).decrypt(sealed.encode()).decode())
    except InvalidToken as error:
        raise HostError(
            msg("the master key does not open the key of {name}", name=name),
            hint=msg("Take the master key that it was stored with, or store it again: trimtab keys provider set."),
        ) from error


def all_providers(store: Store) -> list[Provider]:
    """The names under which keys are kept."""
    providers = tables.providers
    with store.reading() as connection:
        rows = connection.execute(sa.select(providers).where(providers.c.sealed != "").order_by(providers.c.name))
        return [Provider(row.name, row.created) for row in rows]


def remove_provider(store: Store, name: str) -> None:
    """Forget a provider's key. UsageError when there is none."""
    if name not in [provider.name for provider in all_providers(store)]:
        raise _unknown(store, name)
    _put(store, name, "")  # the row stays, so that gateways hear of it


def _put(store: Store, name: str, sealed: str) -> None:
    providers = tables.providers
    with store.writing() as to:
        row = {"sealed": sealed, "created": time.time(), "version": to.version}
        changed = to.connection.execute(sa.update(providers).where(providers.c.name == name).values(row))
        if not changed.rowcount:
            to.connection.execute(sa.insert(providers), {"name": name, **row})


def _unknown(store: Store, name: str) -> UsageError:
    names = ", ".join(provider.name for provider in all_providers(store)) or "-"
    return UsageError(
        msg("the store has no key of a provider {name}", name=name),
        hint=msg("It has those of: {names}. Store one: trimtab keys provider set NAME.", names=names),
    )


def _write(file: Path, text: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(text + b"\n")
    except OSError as error:
        raise HostError(msg("cannot write {path}: {reason}", path=file, reason=error.strerror)) from error
