"""`trimtab down`: end servers and see that nothing of them is left."""

from __future__ import annotations

import sys

from trimtab.cli import options
from trimtab.cli.format.servers import down_json, ended_text
from trimtab.cli.settings import dirs, language
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.ending import Ended, end_server, patience
from trimtab.supervisor.states import ENDED


def run(
    name: options.ServerName = None,
    every: options.EveryServer = False,
    timeout: options.StopBound = None,
    json: options.AsJson = False,
) -> int:
    """End a server: by name, the only one, or --all. Returns when no process of it is left."""
    ended: list[Ended] = []
    for record in _asked(name, every):
        print(msg("ending {name} ...", name=record.name).text(language()), file=sys.stderr, flush=True)
        ended.append(end_server(dirs().state, record, timeout if timeout is not None else patience(record)))
        if not json:
            print(ended_text(ended[-1]).text(language()), flush=True)
    if json:
        print(down_json(ended))
    return 0


def _asked(name: str | None, every: bool) -> list[ServerRecord]:
    running = registry.live(dirs().state)
    if name is not None:
        record = registry.find(dirs().state, name)
        if record.state in ENDED:
            print(
                msg("{name} is not running ({state})", name=name, state=record.state).text(language()), file=sys.stderr
            )
            return []
        return [record]
    if not running:
        print(msg("no server is running").text(language()), file=sys.stderr)
    if len(running) > 1 and not every:
        names = ", ".join(record.name for record in running)
        raise UsageError(
            msg("{count} servers are running: {names}", count=len(running), names=names),
            hint=msg("Name one, or end all: trimtab down --all"),
        )
    return running
