"""The record of one server that Trimtab runs, as the supervisor writes it and others read it. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

SCHEMA = "trimtab.server/1"


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One server of this host. It may hold its API key, so its file is for its owner only.

    `pid`, `pid_started` (seconds since the host's start) and `boot` (which start of the host) name the supervising
    process, so that a pid in use again is told from it;
    `group` is the process group and session of the engine, `mark` the value of TRIMTAB_SERVER in its environment.
    """

    name: str
    state: str
    pid: int
    pid_started: float
    host: str
    port: int
    base_url: str  # with /v1
    models: tuple[str, ...] = ()
    api_key: str = ""
    devices: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    engine: str = "vllm"
    engine_version: str = ""
    engine_pid: int = 0
    group: int = 0
    mark: str = ""
    log: str = ""
    boot: str = ""
    restarts: int = 0  # starts after the first
    end_s: float = 0.0  # how long it may take from the request to end until its engine is killed; 0: not known
    created: float = 0.0  # seconds since the epoch
    ready_after_s: float | None = None
    reason: str = ""  # why it is in this state
    schema: str = SCHEMA


def encode_record(record: ServerRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def decode_record(data: bytes) -> ServerRecord:
    """The record in `data`; msgspec.DecodeError or ValidationError when it holds none, or one of another schema."""
    found = msgspec.json.decode(data, type=ServerRecord)
    if found.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {found.schema}, not {SCHEMA}")
    return found


_KEY_OPTION = re.compile(r"^(--api-key|--hf-token)(=.*)?$")


def public(record: ServerRecord) -> dict[str, Any]:
    """The record as plain data to be shown: keys and tokens are replaced by three stars."""
    shown: dict[str, Any] = msgspec.to_builtins(record)
    shown["api_key"] = "***" if record.api_key else ""
    shown["argv"] = without_secrets(record.argv)
    return shown


def without_secrets(argv: tuple[str, ...]) -> list[str]:
    """argv with the values of --api-key and --hf-token replaced by three stars."""
    shown: list[str] = []
    hide = False
    for word in argv:
        option = _KEY_OPTION.match(word)
        if option and option[2]:
            shown.append(f"{option[1]}=***")
        else:
            shown.append("***" if hide and not word.startswith("--") else word)
        hide = bool(option and not option[2]) or (hide and not word.startswith("--"))
    return shown
