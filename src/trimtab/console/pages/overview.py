"""Overview: back ends, servers of this host and their load, the last incidents, what was changed here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.console.asked import Asked, House
from trimtab.engine.bottleneck import WINDOW_S, look_of, rates
from trimtab.gateway.admin import BackEndState
from trimtab.gateway.store.audit import Entry, last_entries
from trimtab.supervisor.history import CRASHES, starts
from trimtab.supervisor.journal import read_journal
from trimtab.supervisor.process import is_alive
from trimtab.supervisor.recorder import read_flight
from trimtab.supervisor.registry import RECORD, directory, is_name, read
from trimtab.supervisor.states import ENDED, State

INCIDENTS, CHANGES = 10, 10
SERVERS = 50
FRESH_S = 60.0  # a load that was recorded before is none of now


class Server(msgspec.Struct, frozen=True):
    """One server that Trimtab runs on this host; loads are None where nothing is recorded."""

    name: str
    state: str
    models: tuple[str, ...]
    restarts: int
    running: int | None = None
    waiting: int | None = None
    kv: float | None = None  # 0 to 1
    tokens_s: float | None = None  # generated


class Incident(msgspec.Struct, frozen=True):
    """An engine that ended unasked, and the doctor's cause where it found one."""

    at: float
    server: str
    state: str
    cause: str


class Overview(msgspec.Struct, frozen=True):
    """The page. `in_flight`: requests in the worker that answers."""

    in_flight: int
    models: tuple[str, ...]
    back_ends: tuple[BackEndState, ...]
    servers: tuple[Server, ...]
    incidents: tuple[Incident, ...]
    changes: tuple[Entry, ...]


def show(house: House, asked: Asked) -> Overview:
    """The page as things stand."""
    names = _names(house.state_dir)
    servers = [found for name in names if (found := _server(house.state_dir, name, asked.now)) is not None]
    incidents = [incident for name in names for incident in _incidents(house.state_dir, name, asked.lang)]
    incidents.sort(key=lambda incident: -incident.at)
    return Overview(
        house.in_flight, tuple(house.routes.names), tuple(house.back_ends.back_ends), tuple(servers),
        tuple(incidents[:INCIDENTS]), tuple(last_entries(house.store, CHANGES)),
    )  # fmt: skip


def _names(state_dir: Path) -> list[str]:
    found = [f for f in (state_dir / "servers").glob(f"*/{RECORD}") if is_name(f.parent.name)]
    return [file.parent.name for file in sorted(found)][:SERVERS]


def _server(state_dir: Path, name: str, now: float) -> Server | None:
    record = read(state_dir, name)
    if record is None:
        return None
    state = record.state
    if state not in ENDED and not is_alive(record.pid, record.pid_started, record.boot):
        state = State.CRASHED
    found = Server(name, str(state), record.models, record.restarts)
    looks = [look_of(m) for m in read_flight(directory(state_dir, name), now - WINDOW_S)] if state not in ENDED else []
    if not looks or looks[-1].at < now - FRESH_S or looks[-1].vitals is None:
        return found
    last = looks[-1].vitals
    return msgspec.structs.replace(
        found, running=last.running, waiting=last.waiting, kv=last.kv_usage, tokens_s=rates(looks).tokens_s
    )


def _incidents(state_dir: Path, name: str, lang: str) -> list[Incident]:
    found: list[Incident] = []
    for start in starts(read_journal(directory(state_dir, name))):
        end = start.end
        if end is None or end.state not in CRASHES:
            continue
        cause = start.diagnosis.cause if start.diagnosis is not None else None
        found.append(Incident(end.at, name, end.state, (cause or end.reason).text(lang)))
    return found[-INCIDENTS:]
