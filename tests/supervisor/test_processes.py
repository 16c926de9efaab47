"""Supervising processes as others see them: signals, sudden death, two at once, detached, and the verbs over them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.supervisor.fake import PROGRAM, ROOT, background, seen_state, wait_for
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, UsageError
from trimtab.supervisor import registry
from trimtab.supervisor.detach import detach
from trimtab.supervisor.ending import end_server, patience
from trimtab.supervisor.process import members, started_at

LIMIT_MIB = 60


def record_of(state_dir: Path, name: str = "fake") -> ServerRecord:
    found = registry.read(state_dir, name)
    assert found is not None
    return found


def nothing_left(record: ServerRecord) -> bool:
    return not members(record.group, record.mark)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory that the verbs use too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TRIMTAB_LANG", "en")
    return tmp_path / "trimtab"


def trimtab(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "trimtab", *argv], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_load_ends_everything(tmp_path: Path, number: int) -> None:
    with background(tmp_path, "fake", "--hold", "load") as child:
        wait_for(lambda: seen_state(tmp_path, "loading"))
        child.send_signal(number)
        assert child.wait(30) == 0
    assert record_of(tmp_path).state == "stopped"
    assert nothing_left(record_of(tmp_path))


@pytest.mark.parametrize(
    "knobs", [("--hold", "load"), ("--ignore-term", "--grandchild", "session")], ids=["load", "stubborn"]
)
def test_after_sigkill_of_the_supervisor_no_engine_is_left_within_10_s(tmp_path: Path, knobs: tuple[str, ...]) -> None:
    with background(tmp_path, "fake", *knobs) as child:
        wait_for(lambda: seen_state(tmp_path, "loading" if "load" in knobs else "ready"))
        child.kill()
        began = time.monotonic()
        wait_for(lambda: nothing_left(record_of(tmp_path)))
        assert time.monotonic() - began < 10
    assert record_of(tmp_path).state != "crashed"
    assert registry.live(tmp_path) == []
    assert record_of(tmp_path).state == "crashed"
    entry = seen_state(tmp_path, "crashed")
    assert entry is not None
    assert "died without ending it" in entry.reason


def test_supervising_stays_small(tmp_path: Path) -> None:
    with background(tmp_path, "fake") as child:
        wait_for(lambda: seen_state(tmp_path, "ready"))
        supervisor, guard = psutil.Process(child.pid), psutil.Process(record_of(tmp_path).group)
        resident = [process.memory_info().rss / 2**20 for process in (supervisor, guard)]
        assert sum(resident) < LIMIT_MIB, resident


def test_two_at_the_same_moment_get_names_and_ports_of_their_own(tmp_path: Path) -> None:
    with background(tmp_path, "-"), background(tmp_path, "-"):
        wait_for(lambda: seen_state(tmp_path, "ready", "fake") and seen_state(tmp_path, "ready", "fake-2"))
        first, second = record_of(tmp_path, "fake"), record_of(tmp_path, "fake-2")
        assert first.port != second.port
        with pytest.raises(UsageError, match="a server named fake is running"):
            registry.claim(tmp_path, registry.Wish("m", name="fake"))
        with pytest.raises(HostError, match=r"belongs to the server fake-2 \(ready\)"):
            registry.claim(tmp_path, registry.Wish("m", port=second.port))


def test_a_pid_that_belongs_to_another_process_now_is_stale(tmp_path: Path) -> None:
    began = started_at(os.getpid())
    assert began is not None
    record = registry.claim(tmp_path, registry.Wish("m"))
    assert [found.name for found in registry.live(tmp_path)] == ["m"]
    registry.write(tmp_path, type(record)(**{**_fields(record), "pid_started": began - 60}))
    assert registry.live(tmp_path) == []
    assert registry.claim(tmp_path, registry.Wish("m")).name == "m"


def _fields(record: ServerRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_down_insists_when_the_engine_does_not_listen(tmp_path: Path) -> None:
    with background(tmp_path, "fake", "--ignore-term", "--hold", "load"):
        wait_for(lambda: seen_state(tmp_path, "loading"))
        ended = end_server(tmp_path, record_of(tmp_path), 0.2)
        assert (ended.name, ended.how) == ("fake", "insisted")
    assert nothing_left(record_of(tmp_path))


def test_down_kills_a_supervisor_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with background(tmp_path, "fake") as child:
        wait_for(lambda: seen_state(tmp_path, "ready"))
        child.send_signal(signal.SIGSTOP)
        ended = end_server(tmp_path, record_of(tmp_path), 0.1)
        assert ended.how == "killed"
    assert nothing_left(record_of(tmp_path))


def test_down_waits_as_long_as_the_server_lets_requests_run(home: Path) -> None:
    with background(home, "fake"):
        wait_for(lambda: seen_state(home, "ready"))
        seen = record_of(home)
        assert (seen.end_s, patience(seen)) == (55, 70)  # 25 s for requests, 30 s for the engine
        assert patience(msgspec.structs.replace(seen, end_s=330.0)) == 345  # of a long --drain
        assert patience(msgspec.structs.replace(seen, end_s=0.0)) == 40  # of a version that did not say
        assert "ended as asked" in trimtab("down").stdout


def test_ps_says_what_it_leaves_out(home: Path) -> None:
    other = registry.directory(home, "other")
    other.mkdir(parents=True)
    (other / "server.json").write_text('{"name": "other"}')
    for words in (("ps",), ("ps", "--all", "--json")):
        told = trimtab(*words)
        assert told.returncode == 0
        assert "other is of another version of Trimtab: Object missing required field" in told.stderr
    (left_out,) = json.loads(trimtab("ps", "--json").stdout)["unreadable"]
    assert left_out["name"] == "other"
    assert "Object missing required field" in left_out["reason"]


def test_ps_logs_and_down(home: Path) -> None:
    assert trimtab("ps").stdout == "no server is running\n"
    with background(home, "fake"):
        wait_for(lambda: seen_state(home, "ready"))
        listed = json.loads(trimtab("ps", "--json").stdout)
        (server,) = listed["servers"]
        assert (server["name"], server["state"], server["schema"]) == ("fake", "ready", "trimtab.server/1")
        assert "fake" in trimtab("ps").stdout
        assert trimtab("logs", "fake", "-n", "1").stdout.endswith("Application startup complete.\n")
        events = [json.loads(line) for line in trimtab("logs", "--json").stdout.splitlines()]
        assert {"kv_tokens": 2096192.0} in [event["numbers"] for event in events]
        unknown = trimtab("down", "fale")
        assert (unknown.returncode, unknown.stderr) == (
            2, "trimtab: there is no server named 'fale'\n  -> Did you mean fake?\n",
        )  # fmt: skip
        down = trimtab("down")
        assert down.returncode == 0
        assert down.stdout.startswith("fake ended as asked in ")
    assert "is not running (stopped)" in trimtab("down", "fake").stderr
    assert json.loads(trimtab("ps", "--all", "--json").stdout)["servers"][0]["state"] == "stopped"


def test_logs_follow_ends_with_the_server(home: Path) -> None:
    with background(home, "fake"), ThreadPoolExecutor(1) as pool:
        wait_for(lambda: seen_state(home, "ready"))
        following = pool.submit(trimtab, "logs", "-f")
        log = Path(record_of(home).log)
        assert wait_for(lambda: log.read_bytes())
        end_server(home, record_of(home), 20)
        told = following.result(30)
    assert (told.returncode, told.stderr) == (0, "")
    assert "Application startup complete" in told.stdout


def test_logs_follow_ends_at_ctrl_c(home: Path) -> None:
    with background(home, "fake"):
        wait_for(lambda: seen_state(home, "ready"))
        command = [sys.executable, "-m", "trimtab", "logs", "-f"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline()
            follower.send_signal(signal.SIGINT)
            assert follower.wait(30) == 0


def test_detached_until_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out, err = io.BytesIO(), io.BytesIO()
    assert detach([str(tmp_path), "fake", "-d"], tmp_path, program=PROGRAM, out=out, err=err) == 0
    record = record_of(tmp_path)
    assert (record.state, out.getvalue()) == ("ready", b"serving fake\n")
    assert err.getvalue().splitlines() == [b"starting", b"loading", b"compiling", b"ready"]
    assert os.getsid(record.pid) == record.pid
    end_server(tmp_path, record, 20)
    assert nothing_left(record)
    assert (registry.directory(tmp_path, "fake") / "up.err").read_text().endswith("stopped\n")


def test_detached_failure_says_what_the_foreground_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out, err = io.BytesIO(), io.BytesIO()
    argv = [str(tmp_path), "fake", "--die", "load", "--exit-code", "4"]
    assert detach(argv, tmp_path, program=PROGRAM, out=out, err=err) == 1
    assert err.getvalue().endswith(b"fake failed to start: the engine ended with exit code 4\n")


def test_ctrl_c_while_detaching_ends_the_background_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def interrupt() -> None:
        wait_for(lambda: seen_state(tmp_path, "loading"))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    out, err = io.BytesIO(), io.BytesIO()
    assert detach([str(tmp_path), "fake", "--hold", "load"], tmp_path, program=PROGRAM, out=out, err=err) == 0
    assert record_of(tmp_path).state == "stopped"
    assert nothing_left(record_of(tmp_path))
