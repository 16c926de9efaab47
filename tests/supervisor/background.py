"""A program that supervises the fake engine: `background.py STATE_DIR NAME [knobs of the fake engine]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.supervisor.fake import spec
from trimtab.supervisor import registry
from trimtab.supervisor.launching import Callbacks, Event, StateChanged, failure
from trimtab.supervisor.stopping import stop_on_signals
from trimtab.supervisor.supervisor import supervise


def told(event: Event) -> None:
    if isinstance(event, StateChanged):
        print(event.state, file=sys.stderr, flush=True)


def main() -> int:
    state_dir, name, knobs = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    wish = registry.Wish(model="fake", name=None if name == "-" else name)
    with stop_on_signals() as stop, registry.claimed(state_dir, wish) as record:
        outcome = supervise(
            spec(state_dir, *knobs, name=record.name, port=record.port),
            stop,
            Callbacks(observer=told, when_ready=lambda record, start: print(f"serving {record.name}", flush=True)),
        )
    if outcome.failed:
        print(failure(outcome), file=sys.stderr, flush=True)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
