"""What goes on beside a server that `up` supervises: its flight recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from trimtab.cli.settings import dirs
from trimtab.engine.flight import MemoryUsed
from trimtab.engine.registry import ServerRecord
from trimtab.facts.probe.meter import Meter
from trimtab.supervisor import registry
from trimtab.supervisor.launching import Event, StateChanged
from trimtab.supervisor.recorder import Recorder

Observer = Callable[[Event], None]


@contextmanager
def watching(record: ServerRecord) -> Iterator[Observer]:
    """An observer that records the server's load and memory while it serves."""
    meter = Meter(record.devices)

    def memory() -> MemoryUsed:
        seen = meter.read()
        return MemoryUsed(seen.gpu_used, seen.gpu_total, seen.host_free)

    with ExitStack() as stack:
        stack.callback(meter.close)
        recorder = Recorder(registry.directory(dirs().state, record.name), record.base_url, memory)
        stack.callback(recorder.close)
        yield lambda event: recorder.state(event.state) if isinstance(event, StateChanged) else None


def every(*observers: Observer) -> Observer:
    """One observer that tells all of them, in order."""

    def tell(event: Event) -> None:
        for observer in observers:
            observer(event)

    return tell
