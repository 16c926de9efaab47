"""A gateway killed under load: what it answered more than a second before is in the store, and nothing twice."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.gateway.fake_back_end import USAGE, back_end
from tests.gateway.process import KEY, Gateway, gateway

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
CONNECTIONS, LOAD_S, BOUND_S = 4, 2.5, 1.0


class Load:
    """Asks on some connections as fast as it is answered; `answered`: when each answer was whole."""

    def __init__(self, running: Gateway) -> None:
        self.answered: list[float] = []
        self._port, self._over = running.port, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CONNECTIONS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        with closing(connection), suppress(OSError, http.client.HTTPException):  # it was killed
            while not self._over.is_set():
                connection.request("POST", "/v1/chat/completions", CHAT, headers)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                self.answered.append(time.monotonic())

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def stored(home: Path) -> tuple[int, int]:
    """Requests and prompt tokens in the books."""
    with closing(sqlite3.connect(home / "data" / "trimtab" / "gateway" / "store.db")) as books:
        found = books.execute("SELECT coalesce(sum(requests), 0), coalesce(sum(prompt_tokens), 0) FROM usage")
        requests, tokens = found.fetchone()
        return int(requests), int(tokens)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_is_older_than_a_second_is_in_the_store_once(tmp_path: Path, workers: str) -> None:
    with back_end() as behind:
        config = (
            f"local: false\nback_ends: {{b: {{url: '{behind.url}'}}}}\nmodels: {{m: {{targets: [{{back_end: b}}]}}}}"
        )
        with gateway(tmp_path, config, "--workers", workers) as running:
            load = Load(running)
            threading.Event().wait(LOAD_S)
            killed = time.monotonic()
            os.killpg(running.child.pid, signal.SIGKILL)
            load.end()
            requests, tokens = stored(tmp_path)
            old = sum(at < killed - BOUND_S for at in load.answered)
            assert old > 100
            assert old <= requests <= len(load.answered) + CONNECTIONS  # those whose answer was on its way
            assert tokens == requests * USAGE["prompt_tokens"]
        with gateway(tmp_path, config) as running:  # what it was about to write is not written anew
            assert stored(tmp_path) == (requests, tokens)
            assert running.ask("POST", "/v1/chat/completions", json.loads(CHAT))[0] == 200
        assert stored(tmp_path)[0] == requests + 1
