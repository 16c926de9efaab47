"""Which server a client is pointed at: the one that was named, else the one of this host, its gateway before it."""

from __future__ import annotations

import os
import re

import msgspec

from trimtab.cli.keeping import last_memo
from trimtab.cli.settings import dirs
from trimtab.connect.live import Served, ask
from trimtab.connect.values import Connection
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor import registry

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of the server."""

    url: str | None
    key: str | None
    key_env: str
    model: str | None
    small_model: str | None
    write_key: bool = False

    def checked(self) -> Wanted:
        """UsageError where the name of the variable is none: a key itself, most likely."""
        if not _VARIABLE.fullmatch(self.key_env):
            raise UsageError(
                msg("--key-env takes the name of a variable, and this is none"),
                hint=msg("export NAME=KEY in your shell, and give its name: --key-env NAME"),
            )
        return self


def server_of(wanted: Wanted, *, otherwise: str | None = None, key: str = "") -> tuple[Served, str]:
    """The server, asked, and the key that is known for it. UsageError where none runs and none was named.

    `otherwise` is asked, with `key`, where no server of this host runs.
    """
    known = key
    if wanted.url:
        url = wanted.url
    elif otherwise and not _ready():
        url = otherwise
    else:
        url, known = _of_this_host()
    sent = (wanted.key or os.environ.get(wanted.key_env, "") or known).strip()
    return ask(url, sent), sent


def connection(wanted: Wanted, served: Served, key: str) -> Connection:
    """What the client is told. UsageError for a model id that the server does not list."""
    for id in (wanted.model, wanted.small_model):
        if id and id not in (one.id for one in served.models):
            raise UsageError(
                msg("{url} serves no model {id}", url=served.root, id=repr(id)),
                hint=msg("It serves: {known}", known=", ".join(one.id for one in served.models[:8])),
            )
    if not served.models:
        raise UsageError(msg("{url} serves no model", url=served.root), hint=msg("Start one: trimtab up MODEL"))
    model = wanted.model or served.models[0].id
    if wanted.write_key and served.needs_key and not key:
        raise UsageError(msg("--write-key needs the key"), hint=msg("Give it with --key, or in TRIMTAB_API_KEY."))
    return Connection(
        root=served.root, model=model, small_model=wanted.small_model or "", key_env=wanted.key_env, key=key,
        needs_key=served.needs_key, write_key=wanted.write_key, context_tokens=served.context_of(model),
    )  # fmt: skip


def _of_this_host() -> tuple[str, str]:
    """URL and key of the only server that runs here, or of the gateway before it."""
    ready = _ready()
    if not ready:
        raise UsageError(
            msg("no server of Trimtab's serves on this host"),
            hint=msg("Name one with --url, or start one: trimtab up MODEL"),
        )
    if len(ready) > 1:
        names = ", ".join(f"{record.name} ({record.base_url})" for record in ready)
        raise UsageError(
            msg("{count} servers run: {names}", count=len(ready), names=names), hint=msg("Name one with --url.")
        )
    return _door(ready[0])


def _ready() -> list[ServerRecord]:
    return [record for record in registry.live(dirs().state) if record.models and record.ready_after_s is not None]


def _door(record: ServerRecord) -> tuple[str, str]:
    """The gateway in front of a server, where there is one: clients reach that and not the engine."""
    from trimtab.cli.up_gateway import KEY_FILE

    home = registry.directory(dirs().state, record.name)
    memo = last_memo(record.name, home)
    if memo is None or memo.gateway is None:
        return record.base_url, record.api_key
    host, port = memo.gateway
    try:
        key = (home / KEY_FILE).read_text(encoding="utf-8").strip()
    except OSError:  # its owner may read it alone: the key is then given by the caller
        key = ""
    return f"http://{registry.reachable(host)}:{port}", key
