"""`trimtab ps`: the servers of this host."""

from __future__ import annotations

import sys
import time

from trimtab.cli import options
from trimtab.cli.format.servers import ps_json, ps_text
from trimtab.cli.settings import dirs, language
from trimtab.messages import Message, msg
from trimtab.supervisor import registry


def run(ended: options.EndedToo = False, json: options.AsJson = False) -> int:
    """List the servers that Trimtab runs on this host."""
    state = dirs().state
    found = registry.records(state) if ended else registry.live(state)
    unreadable = registry.unreadable(state)
    for name, why in unreadable.items():
        print(_of_another_version(name, why).text(language()), file=sys.stderr)
    print(ps_json(found, unreadable) if json else ps_text(found, time.time(), language()))
    return 0


def _of_another_version(name: str, why: str) -> Message:
    return msg("left out: the record of the server {name} is of another version of Trimtab: {why}", name=name, why=why)
