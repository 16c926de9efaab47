"""`trimtab up --gateway` over a stand-in for vLLM: clients reach the gateway alone, and it ends with its server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.cli.test_up import clear, environment, left_over, record, running, up
from tests.cli.test_up_kept import stop
from tests.ports import free_port
from tests.supervisor.fake import wait_for


def ask(url: str, key: str) -> int:
    body = json.dumps({"model": "tiny-llama", "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/chat/completions", body, headers), timeout=20
        ) as got:
            return int(got.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_gateway_stands_before_the_engine_and_ends_with_it(home: Path, model: Path, python: Path) -> None:
    port = free_port()
    words = (str(model), "--engine-python", str(python), "--no-verify", "--gateway", "--gateway-port", str(port))
    with running(home, *words) as child:
        seen = wait_for(lambda: record(home, "ready"))
        assert child.stdout is not None
        printed = ""
        while "model id" not in printed:
            line = child.stdout.readline()
            assert line, printed
            printed += line
        url = re.search(r"base URL: (\S+)", printed)
        key = re.search(r"API key: (\S+)", printed)
        assert url is not None
        assert key is not None
        assert url[1] == f"http://127.0.0.1:{port}/v1"
        assert key[1] != seen.api_key
        assert ask(url[1], key[1]) == 200
        assert ask(url[1], seen.api_key) == 401
        assert ask(seen.base_url, key[1]) == 401
        assert seen.host == "127.0.0.1"
        words_seen = [" ".join(psutil.Process(pid).cmdline()) for pid in left_over(home)]
        assert not [line for line in words_seen if seen.api_key in line or key[1] in line]
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=40)
    assert child.returncode == 0
    assert seen.api_key not in printed + out
    assert left_over(home) == []
    file = home / "state" / "trimtab" / "gateway" / "key"
    assert file.read_text().strip() == key[1]
    assert file.stat().st_mode & 0o077 == 0


def test_detached_with_its_gateway_then_down(home: Path, model: Path, python: Path) -> None:
    port = free_port()
    words = (str(model), "--engine-python", str(python), "--no-verify", "--gateway", "--gateway-port", str(port))
    started = up(home, *words, "-d")
    assert started.returncode == 0, started.stderr
    assert f"base URL: http://127.0.0.1:{port}/v1" in started.stdout
    key = (home / "state" / "trimtab" / "gateway" / "key").read_text().strip()
    assert ask(f"http://127.0.0.1:{port}/v1", key) == 200
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "down", "--all"], env=environment(home), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wait_for(lambda: left_over(home) == [])


def test_an_engine_that_dies_comes_back_behind_a_living_gateway(home: Path, model: Path, python: Path) -> None:
    port = free_port()
    words = (str(model), "--engine-python", str(python), "--no-verify", "--gateway", "--gateway-port", str(port))
    with running(home, *words) as child:
        seen = wait_for(lambda: record(home, "ready"))
        url, key = f"http://127.0.0.1:{port}/v1", (home / "state" / "trimtab" / "gateway" / "key").read_text().strip()
        wait_for(lambda: ask(url, key) == 200)
        os.kill(seen.engine_pid, signal.SIGKILL)
        wait_for(lambda: ask(url, key) in (502, 503))  # it lives, and says so
        wait_for(lambda: ask(url, key) == 200)
        stop(child)
    assert left_over(home) == []


def test_a_server_of_before_comes_back_with_its_gateway(home: Path, model: Path, python: Path) -> None:
    port, other = free_port(), free_port()
    words = (str(model), "--engine-python", str(python), "--no-verify", "--name", "mine", "--port", str(free_port()))
    words += ("--gateway", "--gateway-port", str(port), "--", "--api-key", "sk-of-the-clients")
    with running(home, *words) as child:
        before = wait_for(lambda: record(home, "ready"))
        wait_for(lambda: ask(f"http://127.0.0.1:{port}/v1", "sk-of-the-clients") == 200)
        stop(child)
    with running(home, "mine", "--no-verify") as child:
        after = wait_for(lambda: record(home, "ready"))
        assert (after.host, after.port, after.api_key) == (before.host, before.port, before.api_key)
        wait_for(lambda: ask(f"http://127.0.0.1:{port}/v1", "sk-of-the-clients") == 200)
        stop(child)
    with running(home, "mine", "--no-verify", "--gateway-port", str(other)) as child:
        wait_for(lambda: record(home, "ready"))
        wait_for(lambda: ask(f"http://127.0.0.1:{other}/v1", "sk-of-the-clients") == 200)
        stop(child)
    with running(home, "mine", "--no-verify", "--no-gateway") as child:
        wait_for(lambda: record(home, "ready"))
        with pytest.raises(urllib.error.URLError):
            ask(f"http://127.0.0.1:{other}/v1", "sk-of-the-clients")
        stop(child)
    journal = home / "state" / "trimtab" / "servers" / "mine" / "journal.jsonl"
    assert "sk-of-the-clients" not in journal.read_text()


def test_a_supervisor_that_is_killed_takes_its_gateway_along(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify", "--gateway", "--gateway-port", str(free_port()))
    with running(home, *words) as child:
        wait_for(lambda: record(home, "ready"))
        child.kill()
        child.wait(10)
        wait_for(lambda: left_over(home) == [])


def test_one_port_for_the_engine_and_its_gateway_is_refused(home: Path, model: Path, python: Path) -> None:
    words = ("--engine-python", str(python), "--gateway", "--port", "8123", "--gateway-port", "8123")
    done = up(home, str(model), *words)
    assert done.returncode == 2
    clear(done, "cannot both listen on port 8123", "--gateway-port N")


def test_a_taken_port_is_told_before_anything_starts(home: Path, model: Path, python: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = up(home, str(model), "--engine-python", str(python), "--gateway", "--gateway-port", str(port))
    assert done.returncode == 2
    assert f"port {port} on 127.0.0.1 is taken" in done.stderr
