"""`trimtab history`: what happened to a server, from its journal and its flight recorder."""

from __future__ import annotations

import time

from trimtab.cli import options
from trimtab.cli.format.history import History, history_json, history_text
from trimtab.cli.named import server_named
from trimtab.cli.settings import dirs, lang
from trimtab.engine.before import WINDOW_S, Before, minutes_before
from trimtab.engine.flight import Moment
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
    since = end.at - WINDOW_S
    if start.at <= end.at:  # else the clock was set back meanwhile
        since = max(since, start.at)
    return minutes_before(_since_the_clock_was_set(read_flight(home, since), end.at), end.at)


def _since_the_clock_was_set(moments: list[Moment], until: float) -> list[Moment]:
    """Those up to `until` after the last step back: what was recorded before it would seem to be of the same time."""
    last = next((at for at in range(len(moments) - 1, -1, -1) if moments[at].at <= until), -1)
    steps = (at for at in range(last, 0, -1) if moments[at].at < moments[at - 1].at)
    return moments[next(steps, 0) : last + 1]
