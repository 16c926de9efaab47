"""`trimtab top`: a server's load, live, with one line that says what limits it."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import msgspec

from trimtab.bench.endpoint import Target, check_target
from trimtab.bench.gauge import Gauge
from trimtab.cli import options
from trimtab.cli.format.top import Frame, frame_json, frame_text
from trimtab.cli.named import server_named
from trimtab.cli.settings import dirs, lang
from trimtab.engine.bottleneck import WINDOW_S, Look, Slots, look_of, rates, read_bottleneck
from trimtab.engine.command import LaunchCommand
from trimtab.engine.flight import MemoryUsed
from trimtab.engine.registry import ServerRecord
from trimtab.errors import UsageError
from trimtab.facts.probe.meter import Meter
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.recorder import read_flight
from trimtab.supervisor.states import ENDED, INITIAL, STARTUP, WAITING
from trimtab.supervisor.stopping import Stop, stop_on_signals

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SCREEN, _AGAIN, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[H\x1b[J", "\x1b[?25h\x1b[?1049l"


class _Subject(msgspec.Struct, frozen=True):
    """What is watched: a server of this host with its record, or an address."""

    name: str
    url: str
    key: str | None
    local: bool
    version: str = ""
    slots: Slots = Slots()
    devices: tuple[str, ...] = ()
    record: ServerRecord | None = None


def run(
    server: options.TopSubject = None,
    key: options.Key = None,
    once: options.Once = False,
    follow: options.Follow = False,
    every: options.Every = 2.0,
    json: options.AsJson = False,
) -> int:
    """Show a server's load until Ctrl-C, and what limits it; one frame with --once or where no terminal is."""
    subject = _subject(server, key)
    single = once or not (follow or sys.stdout.isatty())
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        gauge = stack.enter_context(Gauge(subject.url, subject.key, local=subject.local))
        gauge.require()
        frames = stack.enter_context(_frames(subject, gauge, every, stop, twice=single))
        show = _shown(stack, json=json, screen=not single and not json and sys.stdout.isatty())
        for frame in frames:
            show(frame)
            if single or _has_ended(subject):
                break
    return 0


def _subject(server: str | None, key: str | None) -> _Subject:
    if server is not None and "://" in server:
        check_target(Target(server, key))
        return _Subject(
            urlsplit(server).netloc.rpartition("@")[2], server, key, (urlsplit(server).hostname or "") in _LOOPBACK
        )
    record = server_named(server)
    if record.state in ENDED:
        raise UsageError(
            msg("{name} is not running ({state})", name=record.name, state=record.state),
            hint=msg("What happened to it: trimtab history {name}", name=record.name),
        )
    if record.state in (INITIAL, *STARTUP, *WAITING):
        raise UsageError(
            msg("{name} does not serve yet ({state})", name=record.name, state=record.state),
            hint=msg("Follow its start: trimtab logs -f {name}", name=record.name),
        )
    seqs = LaunchCommand.from_argv(record.argv).get("max-num-seqs")
    return _Subject(
        record.name, record.base_url, key or record.api_key, True, record.engine_version,
        Slots(int(seqs) if seqs and seqs.isdecimal() else None), record.devices, record,
    )  # fmt: skip


def _has_ended(subject: _Subject) -> bool:
    return subject.record is not None and registry.find(dirs().state, subject.record.name).state in ENDED


@contextmanager
def _frames(subject: _Subject, gauge: Gauge, every_s: float, stop: Stop, *, twice: bool) -> Iterator[Iterator[Frame]]:
    """Frames until Ctrl-C, each after a look. The flight recorder's last minute makes the first one know rates."""
    meter = Meter(subject.devices) if subject.local else None
    looks: deque[Look] = deque(_recorded(subject))
    woken = threading.Event()
    stop.listen(lambda times: woken.set())

    def made() -> Iterator[Frame]:
        if twice and not looks:
            looks.append(gauge.look())
            woken.wait(every_s)
        while not woken.is_set():
            looks.append(gauge.look())
            while looks[0].at < looks[-1].at - WINDOW_S:
                looks.popleft()
            yield _frame(subject, list(looks), meter)
            woken.wait(every_s)

    try:
        yield made()
    finally:
        if meter is not None:
            meter.close()


def _recorded(subject: _Subject) -> list[Look]:
    if subject.record is None:
        return []
    home, now = registry.directory(dirs().state, subject.record.name), time.time()
    return [look_of(moment) for moment in read_flight(home, now - WINDOW_S, now)]


def _frame(subject: _Subject, looks: list[Look], meter: Meter | None) -> Frame:
    seen = meter.read() if meter is not None else None
    memory = MemoryUsed(seen.gpu_used, seen.gpu_total, seen.host_free) if seen is not None else MemoryUsed()
    return Frame(
        subject.name, subject.url, subject.version, looks[-1], rates(looks), read_bottleneck(looks, subject.slots),
        subject.slots, memory,
    )  # fmt: skip


def _shown(stack: ExitStack, *, json: bool, screen: bool) -> Callable[[Frame], None]:
    """Something that prints frames; on a screen of its own each takes the place of the one before."""
    if json:
        return lambda frame: print(frame_json(frame, lang()), flush=True)
    if not screen:
        return lambda frame: print("\n".join(frame_text(frame, lang())), flush=True)
    print(_SCREEN, end="", flush=True)
    stack.callback(lambda: print(_LEAVE, end="", flush=True))
    return lambda frame: print(_AGAIN + "\n".join(frame_text(frame, lang())), flush=True)
