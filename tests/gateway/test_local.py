"""Servers of this host are found, served under their own key, and left when they end."""

import json
import os
from pathlib import Path

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import Gateway, gateway, until
from trimtab.engine.registry import ServerRecord, encode_record
from trimtab.gateway.local import local_servers

SECRET = "sk-of-the-engine"


def write(state: Path, url: str, state_now: str, pid: int | None = None, ready: float | None = 1.0) -> None:
    """As a supervisor writes it: replaced in one step."""
    port = int(url.split(":")[2].split("/")[0])
    record = ServerRecord(
        name="tiny", state=state_now, pid=os.getpid() if pid is None else pid, pid_started=0.0, host="127.0.0.1",
        port=port, base_url=url, models=("tiny-model",), api_key=SECRET, ready_after_s=ready,
    )  # fmt: skip
    home = state / "servers" / "tiny"
    home.mkdir(parents=True, exist_ok=True)
    (home / ".new").write_bytes(encode_record(record))
    (home / ".new").replace(home / "server.json")


def models(running: Gateway) -> list[str]:
    return [entry["id"] for entry in json.loads(running.ask("GET", "/v1/models")[2])["data"]]


def test_a_server_comes_and_goes(tmp_path: Path) -> None:
    state = tmp_path / "state" / "trimtab"
    with back_end() as behind, gateway(tmp_path, "") as running:
        behind.lists = "tiny-model"
        assert models(running) == []
        write(state, behind.url, "ready")
        until(lambda: models(running) == ["tiny-model"], "the model")
        body = {"model": "tiny-model", "messages": []}
        assert running.ask("POST", "/v1/chat/completions", body)[0] == 200
        assert behind.seen[0][1]["authorization"] == f"Bearer {SECRET}"
        write(state, behind.url, "stopped")
        until(lambda: models(running) == [], "no model")
    assert SECRET not in running.log.read_text()


def test_who_is_found(tmp_path: Path) -> None:
    def found(state_now: str, **more: object) -> int:
        write(tmp_path, "http://127.0.0.1:9/v1", state_now, **more)  # type: ignore[arg-type]
        return len(local_servers(tmp_path))

    assert found("ready") == found("degraded") == found("backing_off") == 1
    assert found("loading", ready=None) == found("crashed") == found("draining") == 0
    assert found("ready", pid=2**22 - 1) == 0  # its supervisor is gone
    (tmp_path / "servers" / "tiny" / "server.json").write_text("{")
    assert local_servers(tmp_path) == ()


def test_its_key_shows_nowhere(tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9/v1", "ready")
    assert SECRET not in repr(local_servers(tmp_path))
