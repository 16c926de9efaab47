"""The servers of this host: one directory each under `state_dir/servers/`, claimed under a lock, so that none collide.

A record stays after its server ended, so that `logs` and reports find it; whether it is live is decided by its process.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import msgspec

from trimtab.engine.registry import ServerRecord, decode_record, encode_record
from trimtab.errors import HostError, TrimtabError, UsageError
from trimtab.messages import Message, msg
from trimtab.supervisor.journal import Journal, writing
from trimtab.supervisor.ports import free_port, require_address, require_free
from trimtab.supervisor.process import boot_id, is_alive, members_gone, started_at
from trimtab.supervisor.rotation import set_aside
from trimtab.supervisor.states import ENDED, State

RECORD, LOG = "server.json", "engine.log"
LOG_FILES = 5  # the current one and those set aside
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
Choose = Callable[[Mapping[str, str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a new server asks for; None lets Trimtab choose."""

    model: str  # what a name is made from
    host: str = "127.0.0.1"
    port: int | None = None
    name: str | None = None
    api_key: str = ""
    choose: Choose = lambda claimed: ()  # cards to take, given device -> server of those in use


def is_name(name: str) -> bool:
    """Whether a server may be called so."""
    return _NAME.fullmatch(name) is not None


def directory(state_dir: Path, name: str) -> Path:
    """Where the server `name` keeps record, journal and log. UsageError when it is no name."""
    if not is_name(name):
        raise UsageError(
            msg("{name!r} is no server name", name=name),
            hint=msg(
                "Use letters, digits, dots, dashes and underscores, at most 63, beginning with a letter or digit."
            ),
        )
    return state_dir / "servers" / name


def claim(state_dir: Path, wish: Wish) -> ServerRecord:
    """Take a name, a port and cards for a server of this process, in state `installing`.

    UsageError when the name is taken, HostError when the port or a card is, or the directory cannot be written.
    """
    require_address(wish.host)
    with _locked(state_dir):
        others = live(state_dir)
        name = _free_name(state_dir, wish, {record.name for record in others} | set(unreadable(state_dir)))
        home = directory(state_dir, name)
        if wish.port is not None:
            _refuse_known_port(wish.port, others)
            require_free(wish.host, wish.port)
        port = wish.port or free_port(wish.host, {record.port for record in others})
        record = ServerRecord(
            name=name, state=State.INSTALLING, pid=os.getpid(), pid_started=started_at(os.getpid()) or 0.0,
            boot=boot_id(), host=wish.host, port=port, base_url=f"http://{reachable(wish.host)}:{port}/v1",
            api_key=wish.api_key, devices=wish.choose(_claimed(others)), log=str(home / LOG), created=time.time(),
        )  # fmt: skip
        with writing(home / LOG):
            set_aside(home / LOG, LOG_FILES)
        write(state_dir, record)
        return record


@contextmanager
def claimed(state_dir: Path, wish: Wish) -> Iterator[ServerRecord]:
    """Claim for a block; if the server was never started in it, the claim ends with it, and the record says why."""
    record = claim(state_dir, wish)
    state, reason = State.STOPPED, msg("ended before the engine was started")
    try:
        yield record
    except TrimtabError as error:
        state, reason = State.FAILED_TO_START, error.message
        raise
    finally:
        last = read(state_dir, record.name)
        if last is not None and last.pid == record.pid and last.state == State.INSTALLING:
            _end(state_dir, last, state, reason)


def reachable(host: str) -> str:
    """The address by which this host reaches a server listening on `host`."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def write(state_dir: Path, record: ServerRecord) -> None:
    """Replace the record's file in one step; only its owner may read it. HostError when it cannot be written."""
    home = directory(state_dir, record.name)
    new = home / f".{RECORD}.{os.getpid()}"
    with writing(home / RECORD):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(encode_record(record))
                file.flush()
                os.fsync(file.fileno())
            new.replace(home / RECORD)
        finally:
            new.unlink(missing_ok=True)


def read(state_dir: Path, name: str) -> ServerRecord | None:
    """The record of `name`; None when there is none that can be read."""
    found = _read(directory(state_dir, name) / RECORD)
    return found if isinstance(found, ServerRecord) and found.name == name else None


def require_readable(state_dir: Path, name: str) -> None:
    """HostError when another version of Trimtab wrote the record of `name`: it is a server all the same."""
    home = directory(state_dir, name)
    found = _read(home / RECORD)
    if isinstance(found, str):
        raise HostError(
            msg("the record of the server {name} is of another version of Trimtab: {why}", name=name, why=found),
            hint=msg("Use that version; or, once no process of it runs: rm -r {home}", home=home),
        )


def _read(file: Path) -> ServerRecord | str | None:
    """The record; None when there is none, or only a torn one; why it cannot be read, when it is of another shape."""
    try:
        return decode_record(file.read_bytes()) if file.is_file() else None  # never wait for a pipe
    except msgspec.ValidationError as error:
        return str(error)
    except (OSError, msgspec.DecodeError):
        return None


def records(state_dir: Path) -> list[ServerRecord]:
    """All records, newest first. One whose process died without a word is written down as crashed, its engine ended."""
    homes = (file.parent.name for file in (state_dir / "servers").glob(f"*/{RECORD}"))
    found = [record for name in homes if is_name(name) and (record := read(state_dir, name)) is not None]
    return sorted((_checked(state_dir, record) for record in found), key=lambda record: -record.created)


def unreadable(state_dir: Path) -> dict[str, str]:
    """Servers whose record is of another version, and why: nobody here knows whether they run."""
    found = ((file.parent.name, _read(file)) for file in (state_dir / "servers").glob(f"*/{RECORD}"))
    return {name: why for name, why in sorted(found, key=str) if isinstance(why, str)}


def live(state_dir: Path) -> list[ServerRecord]:
    """The records of servers that run or are being started, newest first."""
    return [record for record in records(state_dir) if record.state not in ENDED]


def find(state_dir: Path, name: str) -> ServerRecord:
    """The record of `name`, live or ended. UsageError naming the nearest, when there is none."""
    known = {record.name: record for record in records(state_dir)}
    if name in known:
        return known[name]
    if is_name(name):
        require_readable(state_dir, name)
    near = get_close_matches(name, known, n=1)
    raise UsageError(
        msg("there is no server named {name}", name=repr(name)),
        hint=msg("Did you mean {near}?", near=near[0]) if near else msg("List them with: trimtab ps --all"),
    )


def claimed_devices(state_dir: Path) -> dict[str, str]:
    """Cards that live servers use: device -> server."""
    return _claimed(live(state_dir))


def _claimed(records: list[ServerRecord]) -> dict[str, str]:
    return {device: record.name for record in records for device in record.devices}


def _checked(state_dir: Path, record: ServerRecord) -> ServerRecord:
    if record.state in ENDED or is_alive(record.pid, record.pid_started, record.boot):
        return record
    last = read(state_dir, record.name) or record  # its last word may have come between reading and looking
    if last.state in ENDED or last.pid != record.pid:
        return last
    members_gone(last.group, last.mark)
    return _end(
        state_dir, last, State.CRASHED, msg("its supervisor (process {pid}) died without ending it", pid=last.pid)
    )


def _end(state_dir: Path, record: ServerRecord, state: State, reason: Message) -> ServerRecord:
    journal = Journal(directory(state_dir, record.name))
    journal.append("state", state=state, previous=record.state, reason=reason)
    journal.close()
    ended = msgspec.structs.replace(record, state=state, reason=str(reason))
    write(state_dir, ended)
    return ended


def _free_name(state_dir: Path, wish: Wish, taken: set[str]) -> str:
    if wish.name is not None:
        if wish.name in taken:
            require_readable(state_dir, wish.name)
            raise _running(wish.name)
        return wish.name
    stem = re.sub(r"[^a-z0-9.]+", "-", wish.model.rstrip("/").rsplit("/", 1)[-1].lower()).strip("-.")[:50] or "server"
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def require_ended(state_dir: Path, name: str) -> None:
    """UsageError while the server `name` runs."""
    if any(record.name == name for record in live(state_dir)):
        raise _running(name)


def _running(name: str) -> UsageError:
    return UsageError(
        msg("a server named {name} is running", name=name),
        hint=msg("Choose another name (--name), or end it: trimtab down {name}", name=name),
    )


def _refuse_known_port(port: int, others: list[ServerRecord]) -> None:
    """A server that is still being started does not listen yet, but its port is taken all the same."""
    for record in others:
        if record.port == port:
            raise HostError(
                msg(
                    "port {port} belongs to the server {name} ({state})",
                    port=port,
                    name=record.name,
                    state=record.state,
                ),
                hint=msg("Use another port, or end it: trimtab down {name}", name=record.name),
            )


@contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    """One claim at a time on this host, also between processes; released by the kernel if the holder dies."""
    servers = state_dir / "servers"
    with writing(servers):
        servers.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(servers / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
