"""Servers that Trimtab runs on this host become back ends by themselves, read from their supervisors' records."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from trimtab.engine.registry import ServerRecord, decode_record
from trimtab.gateway.config import BackEndConfig, Config
from trimtab.gateway.secret import Secret

SERVING = frozenset({"ready", "degraded"})
GONE = frozenset({"draining", "stopped", "failed_to_start", "crashed", "given_up"})


class LocalServer(msgspec.Struct, frozen=True):
    """One of them; its key is the one that its supervisor gave it, from its owner's file."""

    name: str
    url: str
    models: tuple[str, ...]
    key: Secret


def local_servers(state_dir: Path) -> tuple[LocalServer, ...]:
    """Those that serve, or did and are being started again: their models stay known, and are answered with 503."""
    found: list[LocalServer] = []
    for file in sorted((state_dir / "servers").glob("*/server.json")):
        record = _read(file)
        if record is None or not record.models or record.state in GONE:
            continue
        once_ready = record.state in SERVING or record.ready_after_s is not None
        if once_ready and _lives(record.pid):
            found.append(LocalServer(record.name, record.base_url, record.models, Secret(record.api_key)))
    return tuple(found)


def with_local(config: Config, servers: tuple[LocalServer, ...]) -> Config:
    """The configuration with them among its back ends; a name that it gives itself stays its own."""
    more = {s.name: BackEndConfig(s.url, kind="vllm") for s in servers if s.name not in config.back_ends}
    return msgspec.structs.replace(config, back_ends={**config.back_ends, **more}) if more else config


def _read(file: Path) -> ServerRecord | None:
    """The record; None of one that is being replaced or is another user's."""
    try:
        return decode_record(file.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def _lives(pid: int) -> bool:
    """Whether the supervising process is there; one that was killed leaves its record as it was."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
