"""`trimtab history`: what happened to a server, from its journal and its flight recorder."""

from __future__ import annotations

import time

from trimtab.cli import options
from trimtab.cli.format.history import History, history_json, history_text
from trimtab.cli.named import server_named
from trimtab.cli.settings import dirs, lang
from trimtab.engine.before import WINDOW_S, Before, minutes_before
from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry
from trimtab.supervisor.history import Start, starts
from trimtab.supervisor.journal import read_journal
from trimtab.supervisor.recorder import read_flight


def run(name: options.ServerName = None, last: options.LastStarts = 10, json: options.AsJson = False) -> int:
    """Print a server's starts: states with times and durations, diagnoses, step-backs, the minutes before a crash."""
    found = history_of(server_named(name), last)
    print(history_json(found, lang()) if json else history_text(found, lang()))
    return 0


def history_of(record: ServerRecord, last: int) -> History:
    """The last starts of a server."""
    home = registry.directory(dirs().state, record.name)
    every = starts(read_journal(home))
    kept = every[-last:]
    before = {start.number: found for start in kept if (found := before_crash(record.name, start)) is not None}
    return History(record, tuple(kept), before, time.time(), left_out=len(every) - len(kept))


def before_crash(name: str, start: Start) -> Before | None:
    """The minutes before the end of a start that crashed in service; None for any other."""
    end = start.end
    if end is None or end.state != "crashed":
        return None
    home = registry.directory(dirs().state, name)
    moments = read_flight(home, max(start.at, end.at - WINDOW_S), end.at)
    return minutes_before(moments, end.at)
