"""End a server from outside: ask its supervisor, wait, insist, and see that nothing of it is left."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.process import is_alive, members, members_gone, send

GRACE_S = 10.0  # for a supervisor that was asked twice

LEAST_S, SLACK_S = 40.0, 15.0  # the latter beyond what the server itself gives requests and its engine


@dataclass(frozen=True, slots=True)
class Ended:
    """What it took to end a server; `how` is `asked`, `insisted` (a second signal) or `killed`."""

    name: str
    how: str
    seconds: float


def patience(record: ServerRecord) -> float:
    """Seconds to wait before insisting: `--drain`, or the engine's own `--shutdown-timeout`, may be long."""
    return max(LEAST_S, record.end_s + SLACK_S)


def end_server(state_dir: Path, record: ServerRecord, bound_s: float) -> Ended:
    """Return once neither the supervisor nor a process of the engine is left. HostError when one cannot be ended."""
    began = time.monotonic()
    how = "asked"
    send(record.pid, signal.SIGTERM)
    if not _gone(record, bound_s):
        how = "insisted"
        send(record.pid, signal.SIGTERM)
        if not _gone(record, GRACE_S):
            how = "killed"
            send(record.pid, signal.SIGKILL)
            _gone(record, GRACE_S)
    last = registry.find(state_dir, record.name)
    if not members_gone(last.group, last.mark):
        left = ", ".join(str(pid) for pid in members(last.group, last.mark))
        raise HostError(
            msg("processes of {name} cannot be ended: {pids}", name=record.name, pids=left),
            hint=msg("They hang in the kernel (a driver or a network disk); restart the host if they hold a card."),
        )
    return Ended(record.name, how, time.monotonic() - began)


def _gone(record: ServerRecord, bound_s: float) -> bool:
    end = time.monotonic() + bound_s
    while is_alive(record.pid, record.pid_started, record.boot):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True
