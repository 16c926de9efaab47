"""`trimtab connect`: point a client program at a server: show, write, undo, check."""

from __future__ import annotations

import os
from pathlib import Path

from trimtab.cli import options
from trimtab.cli.connecting import Wanted, connection, server_of
from trimtab.cli.format import connect as shown
from trimtab.cli.settings import dirs, lang
from trimtab.connect import checking, registry
from trimtab.connect.client import Client, Present, Trouble
from trimtab.connect.live import Served, Unserved
from trimtab.connect.undoing import undo as take_back
from trimtab.connect.values import KEY_VARIABLE, Connection, Surroundings
from trimtab.connect.writing import Planned, planned, write
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules.rule import Severity


def run(
    client: options.ClientName = None,
    url: options.ConnectUrl = None,
    key: options.Key = None,
    key_env: options.KeyVariable = KEY_VARIABLE,
    model: options.ServedModel = None,
    small_model: options.SmallModel = None,
    write: options.ConnectWrite = False,
    print_: options.ConnectPrint = False,
    undo: options.ConnectUndo = False,
    check: options.ConnectCheck = False,
    write_key: options.WriteKey = False,
    json: options.AsJson = False,
) -> int:
    """Show what a client needs to ask your server; write it into the client's configuration, take it back, check it."""
    if client is None:
        print(
            shown.clients_json(registry.clients()) if json else shown.clients_text(registry.clients(), lang()), end=""
        )
        return 0
    chosen = registry.client(client)
    asked = [name for name, on in (("--print", print_), ("--undo", undo), ("--check", check)) if on]
    if len(asked) + (write and "--check" not in asked) > 1:
        raise UsageError(msg("{options} exclude each other", options=", ".join([*asked, *(["--write"] * write)])))
    wanted = Wanted(
        url=url, key=key, key_env=key_env, model=model, small_model=small_model, write_key=write_key
    ).checked()
    if undo:
        return _undo(chosen, json=json)
    if check:
        return _check(chosen, wanted, write_it=write, json=json)
    return _connect(chosen, wanted, write_it=write, only_snippet=print_, json=json)


def around() -> Surroundings:
    """This process's own surroundings, which a client started beside it shares."""
    return Surroundings(os.environ, Path.home(), Path.cwd())


def _connect(client: Client, wanted: Wanted, *, write_it: bool, only_snippet: bool, json: bool) -> int:
    served, key = server_of(wanted)
    told = connection(wanted, served, key)
    if only_snippet:
        print(client.snippet(told))
        return 0
    plans = _plans(client, told, write_it)
    if write_it:
        write(plans, _store(client))
    troubles = _ahead(client, told, served)
    if json:
        print(shown.plan_json(client, told, plans, troubles, lang(), written=write_it), end="")
    else:
        print(shown.plan_text(client, told, plans, troubles, lang(), written=write_it), end="")
    return 0


def _plans(client: Client, told: Connection, write_it: bool) -> tuple[Planned, ...]:
    if client.edits is None:
        if write_it:
            raise UsageError(
                msg("{client} has no configuration file to write", client=client.title),
                hint=msg("trimtab connect {name} --print prints what to paste.", name=client.name),
            )
        return ()
    return planned(client.edits(told, around()))


def _ahead(client: Client, told: Connection, served: Served) -> list[Trouble]:
    """What will not do however the client is set."""
    troubles = list(checking.too_small(client, told.context_tokens))
    troubles += checking.unspoken(client, served)
    return troubles + list(checking.proxied(client.base_url(told), os.environ))


def _undo(client: Client, *, json: bool) -> int:
    undone = take_back(_store(client))
    print(shown.undone_json(undone) if json else shown.undone_text(undone, lang()), end="")
    return 0


def _store(client: Client) -> Path:
    return dirs().state / "connect" / client.name


def _check(client: Client, wanted: Wanted, *, write_it: bool, json: bool) -> int:
    """Judge the configuration beside the server; with --write mend it and judge again."""
    if client.read is None:
        raise UsageError(
            msg("{client} has no configuration file to check", client=client.title),
            hint=msg("trimtab doctor URL says what stands between a client and a server."),
        )
    found = checking.present(client, around())
    served, silent = _served(wanted, found)
    troubles = checking.judge(client, found, served, os.environ) + silent
    if write_it and any(one.mends for one in troubles):
        answered, key = server_of(wanted)
        write(_plans(client, connection(wanted, answered, key), True), _store(client))
        found, served, silent = checking.present(client, around()), answered, []
        troubles = checking.judge(client, found, served, os.environ)
    text = shown.check_json if json else shown.check_text
    print(text(client, found, troubles, lang()), end="")
    return int(any(one.severity is Severity.ERROR for one in troubles))


def _served(wanted: Wanted, found: Present | None) -> tuple[Served | None, list[Trouble]]:
    """The server that was named, or the one of this host, or the one that the configuration names."""
    key = checking.key_of(found, os.environ) if found is not None else ""
    try:
        return server_of(wanted, otherwise=found.base_url if found is not None else None, key=key)[0], []
    except Unserved as error:
        return None, [_silent(error, found)]
    except UsageError:
        if wanted.url:
            raise
        return None, []  # no server to compare with: the file is judged by itself


def _silent(error: Unserved, found: Present | None) -> Trouble:
    """What the doctor calls it: CLT002 for a key that is refused, CLT021 for a server that does not answer."""
    return Trouble(error.code, Severity.ERROR, error.message, found.place if found else "", mends=False)
