"""`trimtab doctor URL` as a process: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil
import pytest

from tests.bench.test_probe import CHUNK, END, GOOD, MODELS, NOT_FOUND, Reply, events, vllm
from tests.fakes.openai_server import Knobs, serving
from tests.fakes.wrong_server import answering


def doctor(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("TRIMTAB_")}
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "doctor", *words], env={**env, "TRIMTAB_LANG": "en", **more},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_server_that_serves() -> None:
    with answering(vllm(GOOD, events(CHUNK, END))) as root:  # type: ignore[arg-type]
        done = doctor(f"{root}/v1")
    assert done.returncode == 0, done.stdout
    assert "a client is served" in done.stdout


def test_the_cause_comes_first_and_the_key_is_not_shown() -> None:
    with serving(Knobs(key="sk-right")) as server:
        done = doctor(f"{server.base_url}/v1", "--json", TRIMTAB_API_KEY="sk-secret-and-wrong")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["schema"] == "trimtab.findings/1"
    assert report["findings"][0]["cause"] == "key-wrong"
    assert report["endpoint"]["key"]["length"] == len("sk-secret-and-wrong")
    assert "sk-secret" not in done.stdout


def test_in_chinese() -> None:
    done = doctor("http://127.0.0.1:9/v1", TRIMTAB_LANG="zh")
    assert done.returncode == 1
    assert "没有程序在监听" in done.stdout


def test_what_listens_here_is_named() -> None:
    with answering(lambda *_: MODELS) as root:
        done = doctor("http://127.0.0.1:9/v1", "--json")
        own = psutil.Process().net_connections("tcp")
    first = min(c.laddr.port for c in own if c.status == psutil.CONN_LISTEN)  # of a process the lowest port is shown
    assert first <= int(root.rpartition(":")[2])
    report = json.loads(done.stdout)
    heard = report["endpoint"]["listening"]
    assert any(f":{first} (" in at for at in heard)
    assert heard[0] in report["findings"][0]["message"]


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1", "http:// x/v1"])
def test_what_is_no_url(url: str) -> None:
    done = doctor(url)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_one_rule_alone() -> None:
    def answer(*_: object) -> Reply:
        return NOT_FOUND

    with answering(answer) as root:  # type: ignore[arg-type]
        assert doctor(f"{root}/v1", "--select", "CLT036").returncode == 0
        assert doctor(f"{root}/v1", "--select", "LOG001").returncode == 2
