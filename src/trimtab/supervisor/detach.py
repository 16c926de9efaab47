"""Run a verb of Trimtab in the background, in a session of its own; until it serves, its words come to us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry
from trimtab.supervisor.journal import SERVING, read_journal, writing
from trimtab.supervisor.stopping import stop_on_signals

DETACHED = "TRIMTAB_DETACHED"  # set for the background process, which may word its messages by it
LOOK_EVERY_S = 0.1
PROGRAM = (sys.executable, "-m", "trimtab")
_FLAGS = ("-d", "--detach")
_WORDS = "up"  # what the background process prints goes to up.out and up.err in the server's directory


def detach(
    argv: Sequence[str],
    state_dir: Path,
    *,
    program: Sequence[str] = PROGRAM,
    out: BinaryIO | None = None,
    err: BinaryIO | None = None,
) -> int:
    """Run `trimtab argv` (without its -d) in the background; 0 once it serves, its own exit code when it ends before.

    What it prints meanwhile is copied to `out` and `err`, so that both ways of starting say the same. Ctrl-C ends it.
    """
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        words = _Words(state_dir, out or sys.stdout.buffer, err or sys.stderr.buffer)
        stack.callback(words.close)
        child = subprocess.Popen(
            [*program, *without_flags(argv, _FLAGS)],
            stdin=subprocess.DEVNULL, stdout=words.write_out, stderr=words.write_err, start_new_session=True,
            env={**os.environ, DETACHED: "1"},
        )  # fmt: skip
        told = 0
        record: ServerRecord | None = None
        while True:
            words.copy()
            code = _ended(child)
            if code is not None:
                words.copy()
                return code
            record = record or _record_of(state_dir, child.pid)
            if record is not None and _serves(state_dir, record):
                words.copy()
                words.keep(registry.directory(state_dir, record.name))
                child.returncode = 0  # it stays: no warning when this object goes
                return 0
            if told < stop.times:
                told = stop.times
                child.send_signal(signal.SIGTERM)


def without_flags(argv: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The words without `flags` of ours; what stands after -- is the engine's."""
    words = list(argv)
    end = words.index("--") if "--" in words else len(words)
    return [word for word in words[:end] if word not in flags] + words[end:]


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(LOOK_EVERY_S)
    except subprocess.TimeoutExpired:
        return None


def _record_of(state_dir: Path, pid: int) -> ServerRecord | None:
    return next((record for record in registry.live(state_dir) if record.pid == pid), None)


def _serves(state_dir: Path, record: ServerRecord) -> bool:
    entries = read_journal(registry.directory(state_dir, record.name))
    return any(entry.what == SERVING and entry.at >= record.created for entry in entries)


class _Words:
    """The background process's output: files that outlive us (a pipe would break it), copied on while we are there."""

    def __init__(self, state_dir: Path, out: BinaryIO, err: BinaryIO) -> None:
        servers = state_dir / "servers"
        stem = servers / f".{_WORDS}-{uuid.uuid4().hex}"
        self._files = [stem.with_suffix(".out"), stem.with_suffix(".err")]
        with writing(servers):
            servers.mkdir(parents=True, exist_ok=True, mode=0o700)
            opened = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for file in self._files]
        self.write_out, self.write_err = opened
        self._copies = [(self._files[0].open("rb"), out), (self._files[1].open("rb"), err)]

    def copy(self) -> None:
        for source, target in self._copies:
            if chunk := source.read():
                target.write(chunk)
                target.flush()

    def keep(self, directory: Path) -> None:
        for file in self._files:
            file.replace(directory / f"{_WORDS}{file.suffix}")

    def close(self) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)
        for fd in (self.write_out, self.write_err):
            os.close(fd)
        for source, _ in self._copies:
            source.close()
