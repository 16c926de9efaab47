"""Run the fake engine under the real supervisor: specs, a thread that supervises, waiting for journal entries."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from trimtab.supervisor import registry
from trimtab.supervisor.journal import Entry, read_journal
from trimtab.supervisor.launching import Callbacks, Event, LaunchSpec, Outcome
from trimtab.supervisor.ports import free_port
from trimtab.supervisor.stopping import Stop
from trimtab.supervisor.supervisor import supervise

ENGINE = Path(__file__).parents[1] / "fakes" / "engine.py"
WAIT_S = 60.0
T = TypeVar("T")


def wait_for(look: Callable[[], T | None], within_s: float = WAIT_S) -> T:
    """Look until something is there; fail after a bound."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        threading.Event().wait(0.02)
    raise AssertionError(f"not seen within {within_s} s")


def command(port: int, *knobs: str) -> tuple[str, ...]:
    return (sys.executable, "-S", str(ENGINE), "--port", str(port), *knobs)


def spec(state_dir: Path, *knobs: str, name: str = "fake", port: int | None = None, **more: object) -> LaunchSpec:
    port = port or free_port("127.0.0.1", first=18100)
    fields = {"env": dict(os.environ), "host": "127.0.0.1", "served_model": "fake", **more}
    return LaunchSpec(name=name, argv=command(port, *knobs), port=port, state_dir=state_dir, **fields)  # type: ignore[arg-type]


PROGRAM = (sys.executable, "-m", "tests.supervisor.background")
ROOT = Path(__file__).parents[2]


@contextmanager
def background(state_dir: Path, name: str, *knobs: str) -> Iterator[subprocess.Popen[bytes]]:
    """A supervising process of its own; ended at the end of the block, however that comes."""
    with subprocess.Popen([*PROGRAM, str(state_dir), name, *knobs], cwd=ROOT, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.terminate()
            child.communicate(timeout=WAIT_S)


def seen_state(state_dir: Path, state: str, name: str = "fake") -> Entry | None:
    entries = read_journal(registry.directory(state_dir, name))
    return next((entry for entry in entries if entry.state == state), None)


@dataclass
class Run:
    """A supervision in a thread of its own."""

    spec: LaunchSpec
    stop: Stop = field(default_factory=Stop)
    events: list[Event] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    callbacks: Callbacks = field(default_factory=Callbacks)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.outcomes.append(supervise(self.spec, self.stop, replace(self.callbacks, observer=self.events.append)))
        except BaseException as error:  # noqa: BLE001 - raised again in outcome()
            self.errors.append(error)

    def until(self, state: str) -> Entry:
        return wait_for(lambda: seen_state(self.spec.state_dir, state, self.spec.name))

    def record(self) -> registry.ServerRecord:
        found = registry.read(self.spec.state_dir, self.spec.name)
        assert found is not None
        return found

    def outcome(self) -> Outcome:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        if self.errors:
            raise self.errors[0]
        return self.outcomes[0]

    def end(self) -> Outcome:
        self.stop.request()
        return self.outcome()
