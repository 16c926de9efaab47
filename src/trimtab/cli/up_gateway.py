"""The gateway that `up --gateway` starts with its server and ends after it: clients reach it and not the engine."""

from __future__ import annotations

import json
import os
import re
import secrets
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from trimtab.cli.gateway_start import KEY_VARIABLE, LIFELINE_VARIABLE
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError
from trimtab.messages import msg
from trimtab.supervisor.journal import writing
from trimtab.supervisor.registry import reachable

FOUND_S = 10.0  # for the gateway to find the server, which it looks for every second
END_S = 10.0
LOG, KEY_FILE = "gateway.log", "gateway.key"


class Gateway(msgspec.Struct, frozen=True):
    """Where clients ask, and the key that opens it."""

    url: str  # without /v1
    key: str

    def shown(self, record: ServerRecord) -> ServerRecord:
        """The record as clients shall see the server, once the gateway serves its model."""
        ends = time.monotonic() + FOUND_S
        while not self._lists(record.models[0]) and time.monotonic() < ends:
            time.sleep(0.1)
        return msgspec.structs.replace(record, base_url=f"{self.url}/v1", api_key=self.key)

    def _lists(self, model: str) -> bool:
        asked = urllib.request.Request(f"{self.url}/v1/models", headers={"Authorization": f"Bearer {self.key}"})
        with suppress(OSError, ValueError), urllib.request.urlopen(asked, timeout=2, context=_own()) as answer:
            return any(entry["id"] == model for entry in json.load(answer)["data"])
        return False


def _own() -> ssl.SSLContext:
    """Of a gateway that this process started a name need not be checked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def gateway_beside(host: str, port: int, key: str, home: Path) -> Iterator[Gateway]:
    """A gateway for a block; `home` is the server's directory, where its log is. HostError when it does not start.

    It holds one end of a pipe: should this process be killed, the pipe ends, and the gateway with it.
    """
    alive, ends = os.pipe()
    env = {**os.environ, KEY_VARIABLE: key, LIFELINE_VARIABLE: str(alive)}
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    log = home / LOG
    with writing(log):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        out = log.open("wb")
    with out:
        child = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "gateway", "--listen", address],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, env=env, pass_fds=[alive], text=True,
            start_new_session=True,
        )  # fmt: skip
    os.close(alive)
    try:
        assert child.stdout is not None
        found = re.search(r"(https?)://\S+:(\d+)/v1", child.stdout.readline())
        if not found:
            raise HostError(msg("the gateway did not start: {why}", why=_why(log)), hint=msg("Its log: {log}", log=log))
        yield Gateway(f"{found[1]}://{reachable(host)}:{found[2]}", key)
    finally:
        os.close(ends)
        _end(child)


def _why(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return next((line for line in lines if line.startswith("trimtab")), lines[-1] if lines else "")


def _end(child: subprocess.Popen[str]) -> None:
    """The engine is gone, so nothing runs through it any more: it ends at once, or is ended."""
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.kill()  # its worker ends with it
        child.wait()
    if child.stdout is not None:
        child.stdout.close()


def clients_key(state_dir: Path, home: Path, given: str | None, *, again: bool) -> str:
    """The key of the gateway before the server in `home`; `again`: of a server of before it is the one of before."""
    file = home / KEY_FILE
    key = (_written(file) if again else "") or given or first_key(state_dir)
    _write(file, key)
    return key


def first_key(state_dir: Path) -> str:
    """The key of the gateways that `up` starts on this host: made once, in a file for its owner alone."""
    file = state_dir / "gateway" / "key"
    text = _written(file)
    if not text:
        text = f"tt-{secrets.token_urlsafe(32)}"
        _write(file, text)
    return text


def _written(file: Path) -> str:
    with writing(file), suppress(FileNotFoundError):
        return file.read_text(encoding="utf-8").strip()
    return ""


def _write(file: Path, text: str) -> None:
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text + "\n")
