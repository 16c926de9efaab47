"""What is written down of one server while it is supervised: its record and its journal, in this order."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, InternalError
from trimtab.messages import Message, msg
from trimtab.supervisor import registry
from trimtab.supervisor.journal import Journal
from trimtab.supervisor.launching import LaunchSpec
from trimtab.supervisor.process import boot_id, started_at
from trimtab.supervisor.states import INITIAL, State, allowed


class Book:
    """Keeps record and journal of one server. Full disks delay what is written, they end no server."""

    def __init__(self, spec: LaunchSpec, log_file: Path) -> None:
        self._state_dir = spec.state_dir
        self._journal = Journal(registry.directory(spec.state_dir, spec.name))
        self.record = _record_of(spec, log_file)
        self._stale, self._refusal = False, ""

    @property
    def state(self) -> State:
        return State(self.record.state)

    @property
    def is_behind(self) -> bool:
        return self._stale or self._journal.is_behind

    @property
    def refusal(self) -> str:
        """Why the disk took nothing, the last time."""
        return self._refusal or self._journal.refusal

    def note(self, **fields: Any) -> None:
        """Change the record; it is written with the next state."""
        self.record = msgspec.structs.replace(self.record, **fields)

    def enter(self, state: State, reason: Message, *, passing: bool, **data: Any) -> None:
        """The state changes. One that is passed through stands in the journal alone: others would take it for the end.

        InternalError when there is no arrow.
        """
        previous = self.state
        if not allowed(previous, state):
            raise InternalError(msg("a server cannot go from {old} to {new}", old=previous, new=state))
        self.note(state=state, reason=str(reason))
        if not passing:
            self._stale = True
            self._write_record()
        self._journal.append("state", state=state, previous=previous, reason=reason, data=data)

    def append(self, what: str, reason: Message | str = "", **fields: Any) -> None:
        self._journal.append(what, reason, **fields)

    def catch_up(self) -> None:
        """Write what a full disk did not take before."""
        if self._stale:
            self._write_record()
        self._journal.catch_up()

    def _write_record(self) -> None:
        try:
            registry.write(self._state_dir, self.record)
            self._stale = False
        except HostError as error:  # what was written when the claim was made cannot be now: the disk is full
            self._refusal = str(error.__cause__ or error)

    def close(self) -> None:
        self.catch_up()
        self._journal.close()


def _record_of(spec: LaunchSpec, log_file: Path) -> ServerRecord:
    claimed = registry.read(spec.state_dir, spec.name)
    ours = claimed is not None and claimed.pid == os.getpid() and claimed.state == INITIAL
    return ServerRecord(
        name=spec.name, state=INITIAL, pid=os.getpid(), pid_started=started_at(os.getpid()) or 0.0, boot=boot_id(),
        host=spec.host, port=spec.port, base_url=f"http://{registry.reachable(spec.host)}:{spec.port}/v1",
        models=(spec.served_model,), api_key=spec.api_key, devices=spec.devices, argv=spec.argv,
        engine_version=spec.engine_version, log=str(log_file), end_s=spec.limits.end_s,
        created=claimed.created if claimed is not None and ours else time.time(),
    )  # fmt: skip
