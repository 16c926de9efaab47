"""`trimtab ps`: the servers of this host."""

from __future__ import annotations

import time

from trimtab.cli import options
from trimtab.cli.format.servers import ps_json, ps_text
from trimtab.cli.settings import dirs, language
from trimtab.supervisor import registry


def run(ended: options.EndedToo = False, json: options.AsJson = False) -> int:
    """List the servers that Trimtab runs on this host."""
    state = dirs().state
    found = registry.records(state) if ended else registry.live(state)
    print(ps_json(found) if json else ps_text(found, time.time(), language()))
    return 0
