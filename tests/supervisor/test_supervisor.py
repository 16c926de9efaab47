"""One server's life with a real process: starts, fails, crashes, is stopped; nothing of it is ever left."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.supervisor.fake import Run, seen_state, spec, wait_for
from trimtab.engine.logs import Kind
from trimtab.errors import HostError
from trimtab.supervisor import registry
from trimtab.supervisor.happenings import Limits
from trimtab.supervisor.journal import read_journal
from trimtab.supervisor.launching import Callbacks, LogSeen, Start, StateChanged, failure
from trimtab.supervisor.process import GUARD_BOUND_S, members
from trimtab.supervisor.states import State
from trimtab.supervisor.stopping import Stop
from trimtab.supervisor.supervisor import supervise

OOM = """(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] EngineCore failed to start.
(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] Traceback (most recent call last):
(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330]     out = torch.empty(output_shape)
(EngineCore pid=9) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] torch.OutOfMemoryError: CUDA out of memory.
Traceback (most recent call last):
  File "/run", line 7, in <module>
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"""


def gone(run: Run) -> None:
    record = run.record()
    assert members(record.group, record.mark) == []


def test_ready_then_stopped(tmp_path: Path) -> None:
    run = Run(spec(tmp_path))
    run.until("ready")
    record = run.record()
    assert (record.state, record.models) == ("ready", ("fake",))
    assert record.ready_after_s is not None
    assert record.ready_after_s > 0
    outcome = run.end()
    assert (outcome.state, outcome.failed, str(outcome.reason)) == (State.STOPPED, False, "ended as asked")
    states = [event.state for event in run.events if isinstance(event, StateChanged)]
    assert states == ["starting", "loading", "compiling", "ready", "draining", "stopped"]
    bars = [
        event.event.numbers for event in run.events if isinstance(event, LogSeen) and event.event.kind is Kind.LOADING
    ]
    assert {"done": 1, "total": 2} in bars
    assert b"GPU KV cache size" in outcome.log_file.read_bytes()
    kinds = [entry.data["kind"] for entry in read_journal(outcome.log_file.parent) if entry.what == "log"]
    assert kinds == ["loaded", "compiled", "kv_tokens"]
    gone(run)


def test_crash_during_load_names_the_cause_and_not_the_last_line(tmp_path: Path) -> None:
    log = tmp_path / "said"
    log.write_text(OOM)
    run = Run(spec(tmp_path, "--die", "load", "--print", str(log), "--exit-code", "3"))
    outcome = run.outcome()
    assert outcome.state is State.FAILED_TO_START
    assert outcome.errors == ("torch.OutOfMemoryError: CUDA out of memory.",)
    text = str(failure(outcome).message)
    assert (
        text == "fake failed to start: the engine ended with exit code 3: torch.OutOfMemoryError: CUDA out of memory."
    )
    gone(run)


def test_killed_during_load(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--hold", "load"))
    run.until("loading")
    os.kill(run.record().engine_pid, signal.SIGKILL)
    outcome = run.outcome()
    assert outcome.state is State.FAILED_TO_START
    assert outcome.status is not None
    assert outcome.status.signal == signal.SIGKILL
    assert "SIGKILL" in str(failure(outcome).message)
    gone(run)


def test_stop_during_load(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--hold", "load"))
    run.until("loading")
    assert run.end().state is State.STOPPED
    gone(run)


def test_crash_after_ready(tmp_path: Path) -> None:
    die = tmp_path / "die"
    run = Run(spec(tmp_path, "--die-when", str(die), "--exit-code", "7"))
    run.until("ready")
    die.touch()
    outcome = run.outcome()
    assert outcome.state is State.CRASHED
    assert outcome.status is not None
    assert outcome.status.returncode == 7
    gone(run)


def test_an_engine_that_ignores_sigterm_is_killed_after_the_bound(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--ignore-term", "--hold", "load", limits=Limits(stop_s=0.5)))
    run.until("loading")
    outcome = run.end()
    assert outcome.state is State.STOPPED
    assert "did not end within" in str(outcome.reason)
    gone(run)


def test_a_second_request_ends_at_once(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--ignore-term", "--hold", "load"))
    run.until("loading")
    run.stop.request()
    run.until("draining")
    outcome = run.end()
    assert str(outcome.reason) == "asked twice to stop"
    gone(run)


def test_a_guard_killed_before_it_read_what_was_asked(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--ignore-term", "--hold", "load"))
    run.until("loading")
    os.kill(run.record().group, signal.SIGSTOP)
    run.stop.request()
    run.until("draining")
    assert str(run.end().reason) == "asked twice to stop"
    gone(run)


def test_start_timeout(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--hold", "load", limits=Limits(start_s=0.5)))
    outcome = run.outcome()
    assert outcome.state is State.FAILED_TO_START
    assert "gave no token within" in str(outcome.reason)
    gone(run)


@pytest.mark.parametrize("where", ["same", "session"])
def test_grandchildren_that_hold_the_output_are_ended_too(tmp_path: Path, where: str) -> None:
    run = Run(spec(tmp_path, "--grandchild", where))
    run.until("ready")
    os.kill(run.record().engine_pid, signal.SIGKILL)
    assert run.outcome().state is State.CRASHED
    gone(run)


def test_killing_the_guard_ends_the_engine(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--grandchild", "session"))
    run.until("ready")
    os.kill(run.record().group, signal.SIGKILL)
    assert run.outcome().state is State.CRASHED
    gone(run)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    missing = spec(tmp_path)
    run = Run(type(missing)(**{**_fields(missing), "argv": ("/nowhere/python", "-c", "1")}))
    with pytest.raises(HostError, match="/nowhere/python: No such file or directory"):
        run.outcome()
    assert seen_state(tmp_path, "failed_to_start")


def test_a_stranger_on_the_port_is_not_taken_for_the_engine(tmp_path: Path) -> None:
    first = Run(spec(tmp_path, name="first"))
    first.until("ready")
    second = Run(spec(tmp_path, name="second", port=first.spec.port))
    outcome = second.outcome()
    assert outcome.state is State.FAILED_TO_START
    assert "Address already in use" in outcome.errors[0]
    assert first.end().state is State.STOPPED


def test_a_key_and_a_model_without_chat(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--api-key", "s3cret", "--no-chat", api_key="s3cret"))
    run.until("ready")
    assert run.end().state is State.STOPPED


def test_an_observer_that_breaks_leaves_no_engine(tmp_path: Path) -> None:
    def broken(event: object) -> None:
        if isinstance(event, LogSeen):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        supervise(spec(tmp_path), Stop(), Callbacks(observer=broken))
    record = registry.read(tmp_path, "fake")
    assert record is not None
    assert members(record.group, record.mark) == []


def test_when_ready_raises_in_the_callers_thread(tmp_path: Path) -> None:
    def refuse(record: registry.ServerRecord, start: Start) -> None:
        raise HostError(registry.msg("not this one"))

    with pytest.raises(HostError, match="not this one"):
        supervise(spec(tmp_path), Stop(), Callbacks(when_ready=refuse))
    record = registry.read(tmp_path, "fake")
    assert record is not None
    assert record.state == "stopped"


def test_stopped_before_it_began(tmp_path: Path) -> None:
    stop = Stop()
    stop.request()
    outcome = supervise(spec(tmp_path), stop)
    assert outcome.state is State.STOPPED
    assert outcome.status is None


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in type(value).__slots__}  # type: ignore[attr-defined]


def test_imports_stay_lean() -> None:
    code = (
        "import sys, trimtab.supervisor.supervisor;"
        "print([m for m in ('typer', 'rich', 'huggingface_hub', 'trimtab.cli') if m in sys.modules])"
    )
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_port_taken_is_free_again(tmp_path: Path) -> None:
    run = Run(spec(tmp_path))
    run.until("ready")
    run.end()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", run.spec.port))
    wait_for(lambda: seen_state(tmp_path, "stopped"))


def test_orphans_of_orphans_are_asked_as_soon_as_they_are_seen(tmp_path: Path) -> None:
    run = Run(spec(tmp_path, "--core", "--worker"))
    run.until("ready")
    began = time.monotonic()
    os.kill(run.record().engine_pid, signal.SIGKILL)
    assert run.outcome().state is State.CRASHED
    assert time.monotonic() - began < GUARD_BOUND_S
    gone(run)
