"""Events told to real commands and to a real HTTP server; a listener that fails, hangs or lies harms nothing."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.supervisor.fake import wait_for
from trimtab.engine.redaction import hide_secrets
from trimtab.messages import msg
from trimtab.supervisor.events import NOTE, Listeners, Teller, run_listener
from trimtab.supervisor.journal import read_journal
from trimtab.supervisor.launching import Diagnosis, StateChanged, Step
from trimtab.supervisor.states import State

KEY = "sk-0123456789abcdefghij"
STEP = Step(("vllm", "serve", "m"), "max-num-seqs", "8", "4", msg("less to keep"))
CRASH = StateChanged(
    State.CRASHED, State.READY, msg("ended by SIGKILL"), 12.3456,
    Diagnosis(errors=(f"ValueError: key {KEY}",), cause=msg("no memory"), step=STEP,
    data={"codes": ["LOG003"], "cause": "oom-run"}),
)  # fmt: skip
READY = StateChanged(State.READY, State.COMPILING, msg("answered with a token"), 3.0, None)
SERVER = {"name": "fake", "base_url": "http://127.0.0.1:8000/v1"}


@contextmanager
def hook(*status: int, hold: threading.Event | None = None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook; it answers `status`, of several one after the other, the last one for ever, and 204 by default."""
    got: list[dict[str, Any]] = []
    answers = list(status) or [204]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append({"type": self.headers["Content-Type"], **json.loads(body)})
            if hold is not None:
                hold.wait(20)
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/services/T0/secret", got
    finally:
        if hold is not None:
            hold.set()
        server.shutdown()
        server.server_close()


def tell(home: Path, listeners: Listeners, *events: StateChanged) -> list[str]:
    """Tell the events; the notes of the journal."""
    teller = Teller(home, SERVER, msgspec.structs.replace(listeners, again_s=0.02), hide_secrets)
    for event in events:
        teller.changed(event)
    teller.close()
    return [entry.reason for entry in read_journal(home) if entry.what == NOTE]


def test_a_webhook_gets_the_event_with_its_diagnosis(tmp_path: Path) -> None:
    with hook() as (url, got):
        assert tell(tmp_path, Listeners(webhooks=(url,)), READY, CRASH) == []
    ready, crash = got
    assert (ready["event"], ready["diagnosis"], ready["type"]) == ("ready", None, "application/json")
    assert crash["schema"] == "trimtab.event/1"
    assert (crash["event"], crash["previous"], crash["reason"]) == ("crashed", "ready", "ended by SIGKILL")
    assert (crash["name"], crash["base_url"], crash["since_start_s"]) == ("fake", SERVER["base_url"], 12.346)
    assert crash["diagnosis"] == {
        "cause": "no memory", "cause_id": "oom-run", "errors": ["ValueError: key ***"], "codes": ["LOG003"],
        "step": {"flag": "max-num-seqs", "before": "8", "after": "4", "why": "less to keep"},
    }  # fmt: skip


def test_a_command_gets_it_on_stdin_and_its_name_in_the_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = f'cat > {out}; echo "$TRIMTAB_EVENT $TRIMTAB_SERVER_NAME" >> {out}'
    assert tell(tmp_path, Listeners(commands=(command,)), CRASH) == []
    body, words = out.read_text().splitlines()
    assert json.loads(body)["diagnosis"]["cause"] == "no memory"
    assert words == "crashed fake"


def test_states_on_the_way_are_not_told(tmp_path: Path) -> None:
    loading = StateChanged(State.LOADING, State.STARTING, msg("the engine's log says so"), 1.0, None)
    with hook() as (url, got):
        tell(tmp_path, Listeners(webhooks=(url,)), loading)
    assert got == []


@pytest.mark.parametrize(
    ("listeners", "note"),
    [
        (Listeners(commands=("echo no such room >&2; exit 3",)), "ended with exit code 3: no such room"),
        (Listeners(commands=("/no/such/program",)), "ended with exit code 127"),
        (Listeners(commands=("sleep 60",), command_s=0.2), "was ended after 0 s"),
        (Listeners(commands=("sleep 60 & sleep 60",), command_s=0.2), "was ended after 0 s"),
        (Listeners(webhooks=("http://127.0.0.1:9/hook/s3cret",)), "the webhook at 127.0.0.1 failed"),
        (Listeners(webhooks=("http://no-such-host.invalid/s3cret",)), "the webhook at no-such-host.invalid failed"),
    ],
)
def test_a_listener_that_fails_is_noted(tmp_path: Path, listeners: Listeners, note: str) -> None:
    (said,) = tell(tmp_path, listeners, CRASH)
    assert note in said
    assert "s3cret" not in said


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_webhook_that_fails_for_the_moment_is_asked_once_more(tmp_path: Path, status: int) -> None:
    with hook(status, 204) as (url, got):
        assert tell(tmp_path, Listeners(webhooks=(url,)), READY) == []
    assert [event["event"] for event in got] == ["ready", "ready"]
    assert got[0] == got[1]


def test_a_webhook_that_goes_on_failing_is_noted_once(tmp_path: Path) -> None:
    with hook(500, 503, 204) as (url, got):
        assert tell(tmp_path, Listeners(webhooks=(url,)), READY) == ["the webhook at 127.0.0.1 answered 503"]
    assert len(got) == 2


@pytest.mark.parametrize("status", [302, 400, 404])
def test_an_answer_that_is_no_success_is_noted_and_not_followed(tmp_path: Path, status: int) -> None:
    with hook(status) as (url, got):
        (said,) = tell(tmp_path, Listeners(webhooks=(url,)), READY)
    assert said == f"the webhook at 127.0.0.1 answered {status}"
    assert len(got) == 1


def test_a_webhook_that_hangs_holds_nothing_up(tmp_path: Path) -> None:
    with hook(hold=threading.Event()) as (url, got):
        teller = Teller(tmp_path, SERVER, Listeners(webhooks=(url,), webhook_s=0.5, again_s=0.02), hide_secrets)
        begun = time.monotonic()
        teller.changed(CRASH)
        teller.changed(READY)
        assert time.monotonic() - begun < 0.3
        teller.close()
        assert [event["event"] for event in got] == ["crashed", "crashed", "ready", "ready"]
    notes = [entry.reason for entry in read_journal(tmp_path)]
    assert len(notes) == 2


def test_a_webhook_whose_answer_trickles_is_left_at_the_bound(tmp_path: Path) -> None:
    with trickling() as url, hook() as (other, got):
        listeners = Listeners(webhooks=(url, other), webhook_s=1.0, again_s=0.02)
        begun = time.monotonic()
        (note,) = tell(tmp_path, listeners, READY)
        assert time.monotonic() - begun < 12
    assert note == "the webhook at 127.0.0.1 failed: no whole answer in time"
    assert len(got) == 1


@contextmanager
def trickling() -> Iterator[str]:
    """A server whose answer's headers never end: a byte comes long before any wait for one is over."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer(taken: socket.socket) -> None:
            with taken, suppress(OSError):
                taken.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not over.wait(0.1):
                    taken.sendall(b"x")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

        over = threading.Event()
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        over.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_the_end_does_not_wait_longer_than_its_bound(tmp_path: Path) -> None:
    with hook(hold=threading.Event()) as (url, _):
        begun = time.monotonic()
        tell(tmp_path, Listeners(webhooks=(url,), webhook_s=5.0, close_s=0.2), CRASH)
        assert time.monotonic() - begun < 3


def test_a_command_that_leaves_something_running_is_done_when_it_ends(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    begun = time.monotonic()
    assert tell(tmp_path, Listeners(commands=(f"sleep 30 & echo $! > {pid}",)), READY) == []
    assert time.monotonic() - begun < 10
    left = int(wait_for(lambda: pid.read_text().strip() or None))
    os.kill(left, 9)


def test_one_that_fails_does_not_keep_the_others_from_hearing(tmp_path: Path) -> None:
    with hook() as (url, got):
        notes = tell(tmp_path, Listeners(commands=("exit 1",), webhooks=(url,)), READY)
    assert len(notes) == len(got) == 1


def test_a_command_where_no_file_can_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    failed = run_listener("true", b"{}", {"event": "ready"}, 5.0)
    assert str(failed) == "the command for events cannot be started: No such file or directory"
