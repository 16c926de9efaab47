"""`trimtab history` over a real server's life: crashed with a load before it, and one that goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.cli.test_up import clear, environment, record, running
from tests.supervisor.fake import wait_for
from trimtab.cli.format.history import History, history_text
from trimtab.cli.history import before_crash
from trimtab.cli.settings import dirs
from trimtab.engine.flight import Moment
from trimtab.engine.registry import ServerRecord
from trimtab.messages import msg
from trimtab.supervisor import registry
from trimtab.supervisor.history import Note, Start, Stay
from trimtab.supervisor.recorder import FlightLog, read_flight


def history(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "history", *words], env=environment(home), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def crashed(home: Path, model: Path, python: Path) -> str:
    """The name of a server that served, was recorded, and crashed."""
    die = home.parent / "die"
    with running(
        home,
        str(model),
        "--engine-python",
        str(python),
        "--no-verify",
        "--no-restart",
        "--force",
        knobs=f"--die-when {die}",
    ) as child:
        seen = wait_for(lambda: record(home, "ready"))
        directory = home / "state" / "trimtab" / "servers" / seen.name
        first = wait_for(lambda: read_flight(directory))[0]
        assert (first.ram_mib or 0) > 0
        log = FlightLog(directory)
        for n in range(1, 5):
            log.write(Moment(at=first.at + n / 100, running=8, waiting=n, kv=0.99, preemptions=n, generated=100 * n))
        log.close()
        die.touch()
        child.communicate(timeout=30)
    return seen.name


def test_a_crash_with_what_came_before_it(home: Path, model: Path, python: Path) -> None:
    name = crashed(home, model, python)
    done = history(home, name)
    assert done.returncode == 0, done.stderr
    for part in (
        f"{name}: starts 1, ended unasked 1, served", "now crashed", "start 1, ", "loading", "compiling", "ready",
        "weights GiB 14.29; KV cache tokens 2,096,192",
        "before: the KV cache was up to 99% full, with 3 preemptions; up to 8 requests ran and 4 waited",
        "KV full", "99%",
    ):  # fmt: skip
        assert part in done.stdout
    assert re.search(r"^    minute .*running", done.stdout, re.MULTILINE)
    told = json.loads(history(home, name, "--json").stdout)
    assert (told["schema"], told["crashes"], told["state"]) == ("trimtab.history/1", 1, "crashed")
    (start,) = told["starts"]
    assert [stay["state"] for stay in start["stays"]] == ["starting", "loading", "compiling", "ready", "crashed"]
    assert start["before"]["minutes"][0]["waiting"] == 4
    assert start["stays"][3]["reason"] == "answered with a token"
    shown = subprocess.run(
        [sys.executable, "-m", "trimtab", "history", name], env={**environment(home), "TRIMTAB_LANG": "zh"},
        capture_output=True, text=True, timeout=60, check=False,
    ).stdout  # fmt: skip
    assert "answered with a token" not in shown
    assert msg("the engine's process was started").text("zh") in shown


def test_what_is_of_note_stands_among_the_states() -> None:
    stays = (Stay("ready", 100.0, 50.0, msg("answered")), Stay("crashed", 150.0, 1.0, msg("was killed")),
             Stay("backing_off", 151.0, 40.0, msg("starts again in 2 s")))  # fmt: skip
    notes = (Note(120.0, "event", msg("the webhook at h answered 500")), Note(155.0, "cards", msg("held by one")),
             Note(190.0, "cards", msg("free again after {s:.0f} s", s=37.0)))  # fmt: skip
    server = ServerRecord(
        name="mine", state="backing_off", pid=1, pid_started=0.0, host="127.0.0.1", port=1, base_url=""
    )
    seen = History(server, (Start(1, 100.0, stays, {}, notes=notes),), {}, now=191.0)
    lines = [line.split()[1] for line in history_text(seen, "en").splitlines()[3:]]
    assert lines == ["ready", "event", "crashed", "backing_off", "cards", "cards"]
    assert "37 秒后" in history_text(seen, "zh")


def test_one_that_runs_needs_no_name(home: Path, model: Path, python: Path) -> None:
    with running(home, str(model), "--engine-python", str(python), "--no-verify") as child:
        wait_for(lambda: record(home, "ready"))
        done = history(home)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert "began" in done.stdout
    assert "now ready" in done.stdout


def test_no_such_server(home: Path) -> None:
    done = history(home, "nobody")
    assert done.returncode == 2
    clear(done, "there is no server named 'nobody'")
    done = history(home)
    assert done.returncode == 2
    clear(done, "there is no server")


def test_the_doctor_shows_them_too(home: Path, model: Path, python: Path) -> None:
    name = crashed(home, model, python)
    words = [sys.executable, "-m", "trimtab", "doctor", name]
    run = {"env": environment(home), "capture_output": True, "text": True, "timeout": 60, "check": False}
    shown = subprocess.run(words, **run)  # type: ignore[call-overload]
    assert "ended with status 1" in shown.stdout  # of the journal; nobody named it
    assert "before: the KV cache was up to 99% full, with 3 preemptions" in shown.stdout
    assert re.search(r"^  minute .*running", shown.stdout, re.MULTILINE)
    told = json.loads(subprocess.run([*words, "--json"], **run).stdout)  # type: ignore[call-overload]
    assert told["before"]["minutes"][0]["waiting"] == 4


def test_a_hang_that_no_log_tells_is_told_by_the_doctor_and_the_report(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--hang-timeout", "3")
    with running(home, *words, knobs="--core --token-s 0.01") as child:
        seen = wait_for(lambda: record(home, "ready"))
        core = wait_for(lambda: psutil.Process(seen.engine_pid).children())[0]
        core.suspend()
        asked = threading.Thread(target=ask, args=(seen,), daemon=True)
        asked.start()
        again = wait_for(lambda: (r := record(home, "ready")) and r.restarts == 1 and r)
        words = (sys.executable, "-m", "trimtab")
        run = {"env": environment(home), "capture_output": True, "text": True, "timeout": 60, "check": False}
        told = subprocess.run([*words, "doctor", seen.name], **run)  # type: ignore[call-overload]
        as_json = subprocess.run([*words, "doctor", seen.name, "--json"], **run)  # type: ignore[call-overload]
        report = subprocess.run([*words, "report", seen.name], **run)  # type: ignore[call-overload]
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert again.engine_pid != seen.engine_pid
    assert told.returncode == as_json.returncode == 1
    assert "its log tells no failure, its journal does: crashed at" in told.stdout
    assert "answers at /health, but gave no token within 2 s" in told.stdout
    assert json.loads(as_json.stdout)["ended"]["state"] == "crashed"
    assert "its journal does: crashed at" in report.stdout
    assert {"engine.log", "engine.log.1"} <= set(report.stdout.splitlines())
    after = subprocess.run([*words, "doctor", seen.name], **run)  # type: ignore[call-overload]
    assert after.returncode == 0, "ended as asked since"


def test_what_the_supervisor_killed_was_not_killed_from_outside(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--hang-timeout", "3", "--no-restart")
    with running(home, *words, knobs="--core --token-s 0.01 --ignore-term") as child:
        seen = wait_for(lambda: record(home, "ready"))
        wait_for(lambda: psutil.Process(seen.engine_pid).children())[0].suspend()
        threading.Thread(target=ask, args=(seen,), daemon=True).start()
        child.communicate(timeout=60)
    told = subprocess.run(
        [sys.executable, "-m", "trimtab", "doctor", seen.name], env=environment(home), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert "crashed at" in told.stdout
    assert "gave no token within 2 s" in told.stdout
    assert "killed" not in told.stdout


def ask(server: ServerRecord) -> None:
    body = {"model": server.models[0], "max_tokens": 1, "messages": []}
    with suppress(httpx2.HTTPError):
        httpx2.post(
            f"{server.base_url}/chat/completions", json=body, headers={"Authorization": f"Bearer {server.api_key}"},
            timeout=60,
        )  # fmt: skip


def test_the_minutes_before_a_crash_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    home = registry.directory(dirs().state, "mine")
    log = FlightLog(home)
    for at, run in ((10_000.0, 1), (10_005.0, 1), (10_300.0, 1), (9_900.0, 8), (9_960.0, 9), (10_100.0, 2)):
        log.write(Moment(at=at, running=run))
    log.close()
    stays = (Stay("ready", 10_000.0, None, msg("answered")), Stay("crashed", 10_100.0, None, msg("was killed")))
    early = before_crash("mine", Start(1, 10_000.0, stays, {}))
    assert early is not None
    assert [row.running for row in early.minutes] == [2]  # began at 10,000 by a clock that was set since
    late = before_crash("mine", Start(1, 10_400.0, stays, {}))
    assert late is not None
    assert [row.running for row in late.minutes] == [8, 9, 2]
