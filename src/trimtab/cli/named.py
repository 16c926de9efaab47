"""Which server a verb means when it is given a name, or none."""

from __future__ import annotations

from trimtab.cli.settings import dirs
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor import registry


def server_named(name: str | None) -> ServerRecord:
    """The record of `name`; with None the newest server that runs, else the newest. UsageError when there is none."""
    state = dirs().state
    if name is not None:
        return registry.find(state, name)
    found = registry.live(state) or registry.records(state)
    if not found:
        raise UsageError(msg("there is no server"), hint=msg("Start one: trimtab up --demo"))
    return found[0]
