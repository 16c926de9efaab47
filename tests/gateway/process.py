"""A gateway as a process of its own, and the few HTTP words that tests say to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

KEY, ADMIN = "sk-test-first-key", "sk-test-admin-key"
WAIT_S = 20.0


class Gateway:
    """A running `trimtab gateway` and what it said."""

    def __init__(self, child: subprocess.Popen[str], port: int, log: Path) -> None:
        self.child, self.port, self.log = child, port, log

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, body; with the first key unless `headers` say otherwise."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        sent = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(headers or {})}
        data = json.dumps(body).encode() if body is not None else None
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def ended_within(self, seconds: float) -> bool:
        """Whether it ends in that time."""
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def said(self, pattern: str) -> None:
        """Wait until the log holds it."""
        until(lambda: re.search(pattern, self.log.read_text(errors="replace")) is not None, pattern)


def until(true: Callable[[], bool], what: str, wait_s: float = WAIT_S) -> None:
    """Ask until it is true."""
    ends = time.monotonic() + wait_s
    while not true():
        assert time.monotonic() < ends, f"not seen within {wait_s} s: {what}"
        time.sleep(0.02)


@contextmanager
def gateway(
    home: Path, config: str, *words: str, environ: Mapping[str, str] | None = None,
    program: tuple[str, ...] = ("-m", "trimtab"),
) -> Iterator[Gateway]:  # fmt: skip
    """Start one with `config`; at the end it is drained, and none of its processes may be left."""
    home.mkdir(parents=True, exist_ok=True)
    file, log = home / "gateway.yaml", home / "gateway.log"
    file.write_text(config)
    env = {**os.environ, "TRIMTAB_GATEWAY_KEY": KEY, "TRIMTAB_ADMIN_KEY": ADMIN, **(environ or {})}
    for name in ("STATE", "DATA", "CONFIG", "CACHE"):
        env[f"XDG_{name}_HOME"] = str(home / name.lower())
    argv = [sys.executable, *program, "gateway", "--config", str(file), "--listen", "127.0.0.1:0", *words]
    with log.open("wb") as errors:
        child = subprocess.Popen(
            argv, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )  # fmt: skip
    try:
        assert child.stdout is not None
        first = child.stdout.readline()
        found = re.search(r":(\d+)/v1", first)
        assert found, f"{first!r} {log.read_text()}"
        yield Gateway(child, int(found[1]), log)
        child.send_signal(signal.SIGTERM)
        child.wait(WAIT_S)
    finally:
        end_group(child)


def end_group(child: subprocess.Popen[str]) -> None:
    """Kill what is left of the session that `child` leads."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(WAIT_S)
    if child.stdout is not None:
        child.stdout.close()
