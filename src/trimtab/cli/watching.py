"""What goes on beside a server that `up` supervises: its flight recorder, and who is told of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from trimtab.cli.settings import dirs
from trimtab.engine.flight import MemoryUsed
from trimtab.engine.redaction import hide_secrets
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.facts.probe.meter import Meter
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.events import Listeners, Teller
from trimtab.supervisor.journal import PLAN, Journal
from trimtab.supervisor.launching import Event, StateChanged
from trimtab.supervisor.recorder import Recorder

Observer = Callable[[Event], None]


def listeners_of(commands: Sequence[str] | None, webhooks: Sequence[str] | None) -> Listeners:
    """UsageError when an address is none, or a command empty."""
    for url in webhooks or ():
        if not _is_url(url):
            raise UsageError(
                msg("--webhook {url} is no address", url=repr(url)), hint=msg("Write it as https://HOST/PATH.")
            )
    if not all(command.strip() for command in commands or ()):
        raise UsageError(msg("--on-event is empty"), hint=msg("Name a command; it gets the event as JSON on stdin."))
    return Listeners(tuple(commands or ()), tuple(webhooks or ()))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in text
    except ValueError:
        return False


@contextmanager
def watching(record: ServerRecord, listeners: Listeners) -> Iterator[Observer]:
    """An observer that records the server's load and memory while it serves, and tells its events."""
    meter, home = Meter(record.devices), registry.directory(dirs().state, record.name)

    def memory() -> MemoryUsed:
        seen = meter.read()
        return MemoryUsed(seen.gpu_used, seen.gpu_total, seen.host_free)

    recorder = Recorder(home, record.base_url, memory)
    server = {"name": record.name, "base_url": record.base_url, "log": record.log}
    teller = Teller(home, server, listeners, lambda text: hide_secrets(text, (record.api_key,)))

    def seen(event: Event) -> None:
        if isinstance(event, StateChanged):
            recorder.state(event.state)
            teller.changed(event)

    with ExitStack() as stack:
        stack.callback(meter.close)
        stack.callback(recorder.close)
        stack.callback(teller.close)
        yield seen


def note_plan(name: str, text: str) -> None:
    """Keep the plan that a start is made from, for a report."""
    journal = Journal(registry.directory(dirs().state, name))
    journal.append(PLAN, data={"text": text})
    journal.close()


def every(*observers: Observer) -> Observer:
    """One observer that tells all of them, in order."""

    def tell(event: Event) -> None:
        for observer in observers:
            observer(event)

    return tell
