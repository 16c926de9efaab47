"""A server that is kept alive: restarted, given up, killed when it hangs, drained; with real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.supervisor.fake import Run, spec, wait_for
from trimtab.messages import Message, msg
from trimtab.supervisor import registry
from trimtab.supervisor.happenings import Limits
from trimtab.supervisor.history import starts
from trimtab.supervisor.journal import Entry, read_journal
from trimtab.supervisor.launching import (
    Callbacks,
    Diagnosis,
    Failure,
    LaunchSpec,
    Start,
    StateChanged,
    Step,
    StillTaken,
    Unwritten,
    failure,
)
from trimtab.supervisor.process import members
from trimtab.supervisor.registry import ServerRecord
from trimtab.supervisor.states import State
from trimtab.supervisor.watch import Pace

LIMITS = Limits(max_restarts=2, first_wait_s=0.05, drain_s=20, dead_s=0.2, silent_s=0.3)
PACE = Pace(ready_s=0.02, look_s=0.05, doubt_s=0.05, stall_s=0.2, proof_s=0.4, token_s=0.4, drain_s=0.05, health_s=0.5)


def kept(tmp_path: Path, *knobs: str, limits: Limits = LIMITS, pace: Pace = PACE) -> LaunchSpec:
    return spec(tmp_path, *knobs, limits=limits, pace=pace)


def entries(run: Run) -> list[Entry]:
    return list(read_journal(run.spec.state_dir / "servers" / run.spec.name))


def states(run: Run) -> list[str]:
    return [entry.state for entry in entries(run) if entry.what == "state"]


def course(run: Run) -> list[str]:
    """The states, less that an engine which is just ending may have been seen not to answer."""
    seen = states(run)
    return [s for s, after in zip(seen, [*seen[1:], ""], strict=True) if (s, after) != ("degraded", "crashed")]


def again(run: Run, count: int) -> ServerRecord:
    """The record once it is ready for the `count`th time."""
    wait_for(lambda: states(run).count("ready") == count)
    return run.record()


def core_of(run: Run) -> psutil.Process:
    children = psutil.Process(run.record().engine_pid).children()
    return next(child for child in children if "--be-core" in child.cmdline())


def ask(run: Run, tokens: int) -> threading.Thread:
    """A request that runs beside the test."""
    body = {"model": "fake", "messages": [], "max_tokens": tokens}
    url = f"http://127.0.0.1:{run.spec.port}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def send() -> None:
        try:
            answers.append(urllib.request.urlopen(request, timeout=60).status)
        except OSError as error:
            answers.append(type(error).__name__)

    answers: list[object] = []
    thread = threading.Thread(target=send, daemon=True)
    thread.answers = answers  # type: ignore[attr-defined]
    thread.start()
    return thread


def refused(run: Run) -> bool:
    request = ask(run, 1)
    request.join(10)
    return request.answers == ["HTTPError"]  # type: ignore[attr-defined]


def gone(run: Run) -> None:
    record = run.record()
    assert members(record.group, record.mark) == []


def test_a_killed_engine_is_started_again_and_then_given_up(tmp_path: Path) -> None:
    run = Run(kept(tmp_path))
    for count in (1, 2, 3):
        record = again(run, count)
        assert record.restarts == count - 1
        os.kill(record.engine_pid, signal.SIGKILL)
    outcome = run.outcome()
    assert (outcome.state, outcome.failed, outcome.restarts) == (State.GIVEN_UP, True, 2)
    assert "ended again after 2 restarts within 60 minutes: was killed by SIGKILL" in str(failure(outcome).message)
    life = ["starting", "loading", "compiling", "ready", "crashed", "backing_off"]
    assert course(run) == [*life, *life, *life[:-1], "given_up"]
    assert run.record().state == "given_up"
    assert [entry.data["returncode"] for entry in entries(run) if entry.what == "exited"] == [-9, -9, -9]
    gone(run)


def test_the_record_never_says_crashed_where_another_start_comes(tmp_path: Path) -> None:
    seen: list[str] = []
    run = Run(kept(tmp_path))
    again(run, 1)
    wait_for(lambda: os.kill(run.record().engine_pid, signal.SIGKILL) is None)

    def look() -> bool:
        seen.append(run.record().state)
        return states(run).count("ready") == 2

    wait_for(look)
    assert "crashed" not in seen
    assert run.end().state is State.STOPPED


def test_each_start_has_a_log_of_its_own_and_its_own_diagnosis(tmp_path: Path) -> None:
    logs: list[str] = []

    def diagnose(failed: Failure) -> Diagnosis:
        logs.append(failed.log_file.read_text())
        return Diagnosis(errors=failed.errors, cause=msg("pulled the plug"), data={"code": "LOG999"})

    run = Run(kept(tmp_path), callbacks=Callbacks(diagnose=diagnose))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    again(run, 2)
    run.end()
    assert logs[0].count("Application startup complete") == 1
    assert run.record().log.endswith("engine.log")
    assert Path(run.record().log + ".1").read_text() == logs[0]
    (told,) = [entry for entry in entries(run) if entry.what == "diagnosis"]
    assert (told.reason, told.data["code"]) == ("pulled the plug", "LOG999")
    backing = [e for e in run.events if isinstance(e, StateChanged) and e.state is State.BACKING_OFF]
    assert str(backing[0].diagnosis.cause if backing[0].diagnosis else "") == "pulled the plug"


def test_a_diagnosis_that_breaks_ends_no_server(tmp_path: Path) -> None:
    def broken(failed: Failure) -> Diagnosis:
        raise RuntimeError("no idea")

    run = Run(kept(tmp_path), callbacks=Callbacks(diagnose=broken))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    again(run, 2)
    assert run.end().state is State.STOPPED
    assert "no idea" in next(e.data["diagnosis_failed"] for e in entries(run) if e.what == "diagnosis")


def test_a_start_that_fails_is_tried_again_where_it_may_help(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--die", "load"), callbacks=Callbacks(diagnose=lambda failed: Diagnosis(permanent=False)))
    assert run.outcome().state is State.GIVEN_UP
    assert states(run).count("failed_to_start") == 3


def test_a_start_with_one_parameter_changed(tmp_path: Path) -> None:
    starts: list[Start] = []

    def diagnose(failed: Failure) -> Diagnosis:
        argv = tuple(word for word in failed.argv if word not in ("--die", "compile"))
        step = Step(argv, "max-model-len", "8192", "4096", msg("max-model-len 8192 -> 4096: it fits then"))
        return Diagnosis(cause=msg("KV cache too small"), step=step)

    def ready(record: ServerRecord, start: Start) -> dict[str, object]:
        starts.append(start)
        return {"verified": {"one_request": True}}

    run = Run(
        kept(tmp_path, "--die", "compile", limits=replace(LIMITS, max_steps=3)),
        callbacks=Callbacks(diagnose=diagnose, when_ready=ready),
    )
    again(run, 1)
    (serving,) = wait_for(lambda: [e for e in entries(run) if e.what == "serving"])
    assert serving.data["verified"] == {"one_request": True}
    assert run.end().state is State.STOPPED
    assert "stepping_back" in states(run)
    (step,) = [entry for entry in entries(run) if entry.what == "step"]
    assert (step.data["flag"], step.data["before"], step.data["after"]) == ("max-model-len", "8192", "4096")
    assert step.reason == "max-model-len 8192 -> 4096: it fits then"
    assert (starts[0].number, starts[0].step and starts[0].step.flag) == (1, "max-model-len")
    assert "--die" not in run.record().argv


def test_a_restart_goes_on_without_a_log_and_says_so(tmp_path: Path) -> None:
    asked: list[Failure] = []

    def diagnose(failed: Failure) -> Diagnosis:
        asked.append(failed)
        return Diagnosis()

    limits = replace(LIMITS, max_restarts=9)
    run = Run(kept(tmp_path, limits=limits), callbacks=Callbacks(diagnose=diagnose))
    first = again(run, 1)
    log = Path(first.log)
    log.unlink()
    log.mkdir()
    os.kill(first.engine_pid, signal.SIGKILL)
    second = again(run, 2)
    assert len(asked) == 1
    (told,) = [event.reason for event in run.events if isinstance(event, Unwritten)]
    assert str(told) == f"cannot write the log file {log}: Is a directory"
    assert [entry.reason for entry in entries(run) if entry.what == "unwritten"] == [str(told)]
    os.kill(second.engine_pid, signal.SIGKILL)
    third = again(run, 3)
    assert len(asked) == 1  # the log on the disk is none of that start's
    log.rmdir()
    os.kill(third.engine_pid, signal.SIGKILL)
    again(run, 4)
    assert log.is_file()
    assert run.end().state is State.STOPPED


def test_a_disk_that_takes_nothing_is_told_once(tmp_path: Path) -> None:
    home = tmp_path / "servers" / "fake"
    home.mkdir(parents=True)
    (home / "journal.jsonl").symlink_to("/dev/full")
    run = Run(kept(tmp_path))
    for restarts in (0, 1):
        seen = wait_for(
            lambda count=restarts: (  # type: ignore[misc]
                (r := registry.read(tmp_path, "fake")) and (r.state, r.restarts) == ("ready", count) and r
            )
        )
        os.kill(seen.engine_pid, signal.SIGKILL)
    assert run.end().state is State.STOPPED
    (told,) = [str(event.reason) for event in run.events if isinstance(event, Unwritten)]
    assert told == f"{home} cannot be written: No space left on device; journal and record wait in memory"


def test_no_start_before_the_cards_are_free(tmp_path: Path) -> None:
    free = threading.Event()

    def settle(argv: tuple[str, ...]) -> None:
        assert free.wait(30)

    run = Run(kept(tmp_path), callbacks=Callbacks(settle=settle))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    wait_for(lambda: states(run)[-1] == "backing_off")
    with pytest.raises(AssertionError):
        wait_for(lambda: states(run)[-1] == "starting", within_s=0.5)
    free.set()
    again(run, 2)
    assert run.end().state is State.STOPPED


def test_no_start_while_others_hold_the_cards(tmp_path: Path) -> None:
    held = "card 0 has 1.0 GiB free and the start needs 20.0 GiB; it is held by 12 (python)"

    def settle(argv: tuple[str, ...]) -> Message:
        time.sleep(0.01)
        return msg("{held}", held=held)

    limits = replace(LIMITS, taken_s=0.2)
    run = Run(kept(tmp_path, limits=limits), callbacks=Callbacks(settle=settle))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    wait_for(lambda: states(run)[-1] == "given_up")
    outcome = run.end()
    assert (outcome.state, outcome.restarts) == (State.GIVEN_UP, 0)
    assert str(outcome.reason) == f"not started again: {held}"
    assert sum(isinstance(event, StillTaken) for event in run.events) == 1
    assert [entry.reason for entry in entries(run) if entry.what == "cards"] == [held]


def test_a_program_that_is_gone_for_a_while_ends_no_server(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.symlink_to(sys.executable)
    work = tmp_path / "work"
    work.mkdir()
    given = kept(tmp_path, limits=replace(LIMITS, max_restarts=99, longest_wait_s=0.1))
    run = Run(replace(given, argv=(str(program), *given.argv[1:]), cwd=work))
    first = again(run, 1)
    work.rmdir()
    program.unlink()
    os.kill(first.engine_pid, signal.SIGKILL)
    why = f"could not start the engine: {program}: No such file or directory"
    wait_for(lambda: any(entry.reason == why for entry in entries(run) if entry.what == "diagnosis"))
    program.symlink_to(sys.executable)
    again(run, 2)
    assert run.end().state is State.STOPPED
    gone(run)


def test_a_look_at_the_cards_that_breaks_holds_up_no_restart(tmp_path: Path) -> None:
    def settle(argv: tuple[str, ...]) -> Message | None:
        raise ValueError("a driver that says nonsense")

    run = Run(kept(tmp_path), callbacks=Callbacks(settle=settle))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    again(run, 2)
    assert run.end().state is State.STOPPED
    assert "a driver that says nonsense" in next(e.reason for e in entries(run) if e.what == "cards")


def test_a_wait_for_the_cards_is_written_down(tmp_path: Path) -> None:
    said: list[Message | None] = [msg("held by 12"), msg("held by 12"), msg("held by 13")]

    def settle(argv: tuple[str, ...]) -> Message | None:
        threading.Event().wait(0.4)
        return said.pop(0) if said else None

    run = Run(kept(tmp_path), callbacks=Callbacks(settle=settle))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    again(run, 2)
    waited = [entry.reason for entry in entries(run) if entry.what == "cards"]
    assert waited == ["held by 12", "held by 13", "free again after 2 s"]
    os.kill(run.record().engine_pid, signal.SIGKILL)
    again(run, 3)
    assert run.end().state is State.STOPPED
    assert len([entry for entry in entries(run) if entry.what == "cards"]) == 3
    assert [str(note.text) for start in starts(entries(run)) for note in start.notes] == waited


def test_stop_while_backing_off(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, limits=replace(LIMITS, first_wait_s=60)))
    os.kill(again(run, 1).engine_pid, signal.SIGKILL)
    wait_for(lambda: states(run)[-1] == "backing_off")
    assert run.end().state is State.STOPPED
    gone(run)


def test_a_stopped_api_server_is_degraded_then_killed_and_restarted(tmp_path: Path) -> None:
    run = Run(kept(tmp_path))
    record = again(run, 1)
    wait_for(lambda: os.kill(record.engine_pid, signal.SIGSTOP) is None)
    again(run, 2)
    assert states(run)[4:7] == ["degraded", "crashed", "backing_off"]
    assert next(e.reason for e in entries(run) if e.state == "crashed") == "does not answer at /health"
    assert run.end().state is State.STOPPED
    gone(run)


def test_a_pause_is_not_a_crash(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, limits=replace(LIMITS, silent_s=600)))
    record = again(run, 1)
    os.kill(record.engine_pid, signal.SIGSTOP)
    wait_for(lambda: run.record().state == "degraded")
    os.kill(record.engine_pid, signal.SIGCONT)
    wait_for(lambda: run.record().state == "ready")
    assert run.record().restarts == 0
    assert run.end().state is State.STOPPED


@pytest.mark.parametrize("running", [True, False], ids=["running", "idle"])
def test_a_hung_core_is_noticed_although_health_answers(tmp_path: Path, running: bool) -> None:
    run = Run(kept(tmp_path, "--core", "--token-s", "0.01"))
    again(run, 1)
    request = ask(run, 100_000) if running else None
    if running:
        wait_for(lambda: b"running{" in metrics(run) and b'"} 1.0\nvllm:num_requests_waiting' in metrics(run))
    core_of(run).suspend()
    again(run, 2)
    told = next(entry.reason for entry in entries(run) if entry.state == "crashed")
    assert told.startswith("answers at /health, but gave no token within 0 s")
    assert states(run).count("degraded") == 1
    assert run.end().state is State.STOPPED
    if request is not None:
        request.join(30)
    gone(run)


def metrics(run: Run) -> bytes:
    return bytes(urllib.request.urlopen(f"http://127.0.0.1:{run.spec.port}/metrics", timeout=10).read())


def test_a_busy_engine_is_well(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--core", "--token-s", "0.1", pace=replace(PACE, stall_s=2, token_s=5)))
    again(run, 1)
    ask(run, 30).join(30)
    assert "degraded" not in states(run)
    assert run.end().state is State.STOPPED


def test_an_engine_without_metrics_is_asked_for_tokens(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--core", "--no-metrics"))
    again(run, 1)
    core_of(run).suspend()
    again(run, 2)
    assert run.end().state is State.STOPPED


def test_a_killed_core_ends_or_is_ended(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--core", "--worker", "--stays-when-core-dies"))
    again(run, 1)
    core_of(run).kill()
    again(run, 2)
    assert next(e.reason for e in entries(run) if e.state == "crashed") == "says at /health that its engine is dead"
    assert run.end().state is State.STOPPED
    gone(run)


def test_running_requests_are_waited_for(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--core", "--token-s", "0.05"))
    again(run, 1)
    request = ask(run, 20)
    wait_for(lambda: b'"} 1.0\nvllm:num_requests_waiting' in metrics(run))
    assert run.end().state is State.STOPPED
    request.join(10)
    assert request.answers == [200]  # type: ignore[attr-defined]


def test_running_requests_are_waited_for_within_a_bound(tmp_path: Path) -> None:
    run = Run(kept(tmp_path, "--core", "--token-s", "0.05", limits=replace(LIMITS, drain_s=0.3)))
    again(run, 1)
    request = ask(run, 100_000)
    wait_for(lambda: b'"} 1.0\nvllm:num_requests_waiting' in metrics(run))
    assert run.end().state is State.STOPPED
    request.join(10)
    assert request.answers != [200]  # type: ignore[attr-defined]


def itself(limits: Limits = LIMITS) -> tuple[tuple[str, ...], Limits]:
    """Knobs and limits of an engine that lets running requests end by itself."""
    knobs = ("--core", "--token-s", "0.05", "--shutdown-timeout", "20")
    return knobs, replace(limits, engine_drain_s=20, rest_s=0.2)


def test_an_engine_that_drains_by_itself_takes_no_new_request(tmp_path: Path) -> None:
    knobs, limits = itself()
    run = Run(kept(tmp_path, *knobs, limits=limits))
    again(run, 1)
    running = ask(run, 60)
    wait_for(lambda: b'"} 1.0\nvllm:num_requests_waiting' in metrics(run))
    run.stop.request()
    wait_for(lambda: refused(run))
    assert states(run)[-1] == "draining"
    outcome = run.outcome()
    assert (outcome.state, str(outcome.reason)) == (State.STOPPED, "ended as asked")
    running.join(10)
    assert running.answers == [200]  # type: ignore[attr-defined]
    gone(run)


def test_an_engine_that_stays_when_its_requests_are_done_is_ended(tmp_path: Path) -> None:
    knobs, limits = itself()
    run = Run(kept(tmp_path, *knobs, "--slow-end", limits=limits))
    again(run, 1)
    outcome = run.end()
    assert str(outcome.reason) == "its requests were done, and it did not end within 0 s"
    gone(run)


@pytest.mark.parametrize("knobs", [("--long-line", "10000000"), ("--nul",), ("--spam", "5000000")], ids=str)
def test_odd_output_stops_nothing(tmp_path: Path, knobs: tuple[str, ...]) -> None:
    run = Run(kept(tmp_path, *knobs))
    again(run, 1)
    assert run.end().state is State.STOPPED
    log = Path(run.record().log).read_bytes()
    assert log.count(b"x") >= 10_000_000 or b"\0\0\0" in log or log.count(b"\n") > 50_000
