"""`trimtab up --demo` on the real vLLM: verified, its snippets work as pasted, and nothing is left behind."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import openai
import psutil
import pytest

from tests.cli.test_up import environment, left_over, record
from tests.cli.test_up_gateway import free_port
from tests.supervisor.fake import wait_for
from trimtab.cli.launch import DEMO_NAME
from trimtab.engine.registry import ServerRecord
from trimtab.supervisor.environments import Engine

pytestmark = pytest.mark.vllm
STARTS_WITHIN_S = 400
FEW: dict[str, Any] = {"max_tokens": 4}


@pytest.fixture
def home(tmp_path: Path, cpu_engine: Engine, demo_model: Path) -> Path:
    """A home in which the engine and the demo model are there already."""
    (tmp_path / "data" / "trimtab").mkdir(parents=True)
    (tmp_path / "data" / "trimtab" / "engines").symlink_to(cpu_engine.python.parents[2])
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "trimtab").symlink_to(demo_model.parent)
    return tmp_path


@contextmanager
def demo(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`trimtab up --demo` until it serves; its report is in the file."""
    report = home / "report"
    with report.open("w") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "up", "--demo", *options], env=environment(home), stdout=out,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert child.stderr is not None
            for line in child.stderr:
                if "serving" in line:
                    break
            yield child, report
        finally:
            if child.poll() is None:
                child.kill()
            child.communicate()


def asked(server: ServerRecord, **more: object) -> http.client.HTTPResponse:
    body = {"model": server.models[0], "messages": [{"role": "user", "content": "Tell a long story."}], **more}
    headers = {"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"}
    url = f"{server.base_url}/chat/completions"
    reply: http.client.HTTPResponse = urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60
    )
    return reply


def refused(server: ServerRecord) -> int | None:
    try:
        asked(server, max_tokens=1).close()
    except urllib.error.HTTPError as error:
        return error.code
    return None


@pytest.mark.timeout(STARTS_WITHIN_S)
def test_the_demo_serves_and_its_snippets_work(home: Path) -> None:
    with demo(home) as (child, report):
        text = report.read_text()
        assert len(re.findall(r"^(?:one_request|concurrency|long_context|no_oom) +passed", text, re.M)) == 4
        assert "--enforce-eager" in text
        assert "set by you" not in text  # the demo chose it
        seen = record(home, "ready")
        assert seen is not None
        curl = next(line for line in text.splitlines() if line.startswith("curl "))
        answer = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=120, check=True).stdout
        assert '"finish_reason"' in answer
        snippet = text[text.index("from openai import OpenAI") :]
        said = subprocess.run(
            [sys.executable, "-c", snippet], capture_output=True, text=True, timeout=120, check=True
        ).stdout
        assert said.strip()
        assert psutil.Process(child.pid).memory_info().rss < 80e6
        with asked(seen, max_tokens=60, min_tokens=60, stream=True) as stream:
            first = stream.readline()
            child.send_signal(signal.SIGINT)
            wait_for(lambda: record(home, "draining"))
            late = wait_for(lambda: refused(seen))
            rest = stream.read()
        child.communicate(timeout=60)
    assert late == 500  # vLLM's word for a request that comes after SIGTERM
    assert (first + rest).count(b"data: ") >= 60
    assert rest.endswith(b"data: [DONE]\n\n")
    assert child.returncode == 0
    assert left_over(home) == []


@pytest.mark.timeout(STARTS_WITHIN_S)
def test_an_engine_killed_in_service_is_told_and_leaves_nothing(home: Path) -> None:
    with demo(home, "--no-restart") as (child, _):
        seen = record(home, "ready")
        assert seen is not None
        core = next(
            p for p in psutil.Process(seen.engine_pid).children(recursive=True) if "EngineCore" in " ".join(p.cmdline())
        )
        os.kill(core.pid, signal.SIGKILL)
        _, err = child.communicate(timeout=90)
    assert child.returncode == 1
    assert "Traceback" not in err
    assert "trimtab logs" in err
    assert left_over(home) == []


def listening(processes: list[psutil.Process]) -> set[str]:
    """The TCP addresses that they take connections on."""
    found = (c for process in processes for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
    return {f"{c.laddr.ip}:{c.laddr.port}" for c in found}


def chatted(client: openai.OpenAI) -> str | None:
    """The answer of the model, or nothing while it is being started again."""
    try:
        answer = client.chat.completions.create(model=DEMO_NAME, messages=[{"role": "user", "content": "Hi"}], **FEW)
    except openai.InternalServerError:
        return None
    return answer.choices[0].message.content


def require_served(url: str, key: str) -> None:
    """Each protocol, whole and as a stream, with the makers' own clients."""
    ask: list[Any] = [{"role": "user", "content": "Hi"}]
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        assert chatted(client)
        chunks = list(client.chat.completions.create(model=DEMO_NAME, messages=ask, stream=True, **FEW))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert client.completions.create(model=DEMO_NAME, prompt="Once", **FEW).choices[0].text
        assert client.responses.create(model=DEMO_NAME, input="Hi", max_output_tokens=4).output_text
        assert [model.id for model in client.models.list()] == [DEMO_NAME]
    with anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0) as claude:
        assert claude.messages.create(model=DEMO_NAME, messages=ask, **FEW).usage.output_tokens
        with claude.messages.stream(model=DEMO_NAME, messages=ask, **FEW) as stream:
            assert "".join(stream.text_stream)


@pytest.mark.timeout(2 * STARTS_WITHIN_S)
def test_behind_its_gateway_the_engine_is_alone_and_comes_back(home: Path) -> None:
    port = free_port()
    with demo(home, "--no-verify", "--gateway", "--gateway-port", str(port)) as (child, report):
        seen = record(home, "ready")
        assert seen is not None
        engine = [psutil.Process(seen.engine_pid), *psutil.Process(seen.engine_pid).children(recursive=True)]
        assert f"127.0.0.1:{seen.port}" in listening(engine)
        assert all(address.startswith("127.0.0.1:") for address in listening(engine))
        url, key = (re.findall(rf"{name}: (\S+)", report.read_text())[0] for name in ("base URL", "API key"))
        assert url == f"http://127.0.0.1:{port}/v1"
        ours = [psutil.Process(pid) for pid in left_over(home)]
        assert not [p for p in ours if {seen.api_key, key} & set(re.split(r"[\s=]", " ".join(p.cmdline())))]
        assert seen.api_key not in report.read_text()
        assert refused(seen) is None
        assert refused(msgspec.structs.replace(seen, api_key=key)) == 401
        require_served(url, key)
        core = next(p for p in engine if "EngineCore" in " ".join(p.cmdline()))
        os.kill(core.pid, signal.SIGKILL)
        with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
            wait_for(lambda: chatted(client) is None)
            wait_for(lambda: (again := record(home, "ready")) and again.restarts == 1, STARTS_WITHIN_S)
            wait_for(lambda: chatted(client))
        down = [sys.executable, "-m", "trimtab", "down", "--all"]
        subprocess.run(down, env=environment(home), capture_output=True, timeout=90, check=True)
        child.communicate(timeout=30)
    assert child.returncode == 0
    assert left_over(home) == []
