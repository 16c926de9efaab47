"""A program that supervises the fake engine: `background.py STATE_DIR NAME [knobs of the fake engine]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.supervisor.fake import spec
from trimtab.supervisor import registry
from trimtab.supervisor.stopping import stop_on_signals
from trimtab.supervisor.supervisor import StateChanged, failure, supervise


def main() -> int:
    state_dir, name, knobs = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    wish = registry.Wish(model="fake", name=None if name == "-" else name)
    with stop_on_signals() as stop, registry.claimed(state_dir, wish) as record:
        outcome = supervise(
            spec(state_dir, *knobs, name=record.name, port=record.port),
            lambda event: print(event.state, file=sys.stderr, flush=True) if isinstance(event, StateChanged) else None,
            stop,
            when_ready=lambda record: print(f"serving {record.name}", flush=True),
        )
    if outcome.failed:
        print(failure(outcome), file=sys.stderr, flush=True)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
