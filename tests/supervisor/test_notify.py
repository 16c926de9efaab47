"""What systemd is told, over a real datagram socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.fake import Run, spec, wait_for
from trimtab.supervisor.notify import Notifier
from trimtab.supervisor.states import State


class Listener:
    """A service manager's end."""

    def __init__(self, address: str) -> None:
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except TimeoutError:
                continue

    def close(self) -> None:
        self._over.set()
        self._thread.join(10)
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    address = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    listener = Listener(address)
    yield listener
    listener.close()


def test_states_readiness_and_the_end_are_told(tmp_path: Path, systemd: Listener) -> None:
    run = Run(spec(tmp_path))
    run.until("ready")
    wait_for(lambda: [said for said in systemd.heard if "READY=1" in said])
    run.end()
    wait_for(lambda: [said for said in systemd.heard if said.startswith("STATUS=stopped")])
    assert systemd.heard[0] == "STATUS=starting: the engine's process was started"
    assert "STATUS=ready: answered with a token\nREADY=1" in systemd.heard
    assert "STATUS=draining: asked to stop\nSTOPPING=1" in systemd.heard
    assert sum("READY=1" in said for said in systemd.heard) == 1


def test_the_watchdog_is_fed_while_nothing_happens(
    tmp_path: Path, systemd: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    run = Run(spec(tmp_path))
    run.until("ready")
    before = systemd.heard.count("WATCHDOG=1")
    wait_for(lambda: systemd.heard.count("WATCHDOG=1") >= before + 3)
    run.end()


def test_a_watchdog_for_another_process_is_not_ours() -> None:
    other = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}
    assert Notifier(other).watchdog_s is None
    assert Notifier({**other, "WATCHDOG_PID": ""}).watchdog_s == 0.3
    assert Notifier({"WATCHDOG_USEC": "300000"}).watchdog_s is None


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    Notifier({}).state(State.READY, "here")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "none")}).state(State.READY, "here")


def test_an_abstract_address() -> None:
    name = f"trimtab-test-{os.getpid()}"
    listener = Listener(f"\0{name}")
    Notifier({"NOTIFY_SOCKET": f"@{name}"}).state(State.READY, "over\ntwo lines")
    assert wait_for(lambda: listener.heard) == ["STATUS=ready: over two lines\nREADY=1"]
    listener.close()
