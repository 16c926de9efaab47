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

import psutil
import pytest

from tests.cli.test_up import environment, left_over, record
from tests.supervisor.fake import wait_for
from trimtab.engine.registry import ServerRecord
from trimtab.supervisor.environments import Engine

pytestmark = pytest.mark.vllm
STARTS_WITHIN_S = 400


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
