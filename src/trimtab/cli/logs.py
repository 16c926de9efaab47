"""`trimtab logs`: what a server's engine printed, and prints."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from trimtab.cli import options
from trimtab.cli.format.servers import log_json
from trimtab.cli.named import server_named
from trimtab.cli.settings import dirs
from trimtab.engine.logs import parse_line
from trimtab.supervisor import registry
from trimtab.supervisor.logfile import follow as follow_file
from trimtab.supervisor.logfile import tail
from trimtab.supervisor.states import ENDED
from trimtab.supervisor.stopping import Stop, stop_on_signals

LOOK_EVERY_S = 0.2


def run(
    name: options.ServerName = None,
    follow: options.Follow = False,
    lines: options.LastLines = 100,
    json: options.AsJson = False,
) -> int:
    """Print a server's log: its last lines, and with -f what comes, until the server ends or Ctrl-C."""
    record = server_named(name)
    log = Path(record.log)
    show = _Lines(json)
    with stop_on_signals() as stop:
        first, end = tail(log, lines)
        show(first)
        if follow:
            woken = threading.Event()
            stop.listen(lambda times: woken.set())
            for chunk in follow_file(log, end, lambda: _is_over(stop, record.name), lambda: woken.wait(LOOK_EVERY_S)):
                show(chunk)
    show.finish()
    return 0


def _is_over(stop: Stop, name: str) -> bool:
    return stop.times > 0 or registry.find(dirs().state, name).state in ENDED


class _Lines:
    """Prints bytes as they are, or each full line as JSON."""

    def __init__(self, json: bool) -> None:
        self._json, self._held = json, b""

    def __call__(self, chunk: bytes) -> None:
        if not self._json:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            return
        *lines, self._held = (self._held + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            if line:
                print(log_json(parse_line(line.decode("utf-8", "replace"))), flush=True)

    def finish(self) -> None:
        if self._held:
            self(b"\n")
