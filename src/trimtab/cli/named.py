"""Which server a verb means when it is given a name, or none."""

from __future__ import annotations

import re

from trimtab.cli.settings import dirs
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.messages import msg


def server_named(name: str | None) -> ServerRecord:
    """The record of `name`; with None the newest server that runs, else the newest. UsageError when there is none."""
    from trimtab.supervisor import registry

    state = dirs().state
    if name is not None:
        refuse_address(name)
        return registry.find(state, name)
    found = registry.live(state) or registry.records(state)
    if not found:
        raise UsageError(msg("there is no server"), hint=msg("Start one: trimtab up --demo"))
    return found[0]


def refuse_address(word: str) -> None:
    """UsageError where `word` is meant as a URL and is none: HOST:PORT, or a scheme that was mistyped."""
    if _ADDRESS.match(word):
        raise UsageError(
            msg("{word} is neither a log nor a server of this host", word=repr(word)),
            hint=msg("A server somewhere is named by its URL: trimtab doctor http://HOST:PORT/v1"),
        )


_ADDRESS = re.compile(r"https?:?/|(?:[\w-]+(?:\.[\w-]+)*|\[[0-9a-fA-F:]+\]):\d{2,5}(?:/|$)")
