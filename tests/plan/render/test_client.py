"""The client's files reach a server: curl and openai-python run as they are written, against a socket."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.openai_server import Knobs, serving
from tests.plan.render.plans import PLANS, TINY, planned
from tests.plan.render.test_shell import shellcheck
from trimtab.plan.planner import Plan
from trimtab.plan.render.client import base_url
from trimtab.plan.render.forms import render
from trimtab.plan.render.launch import launch_of

NAME = "模型 `1` $x 'q' \"d\""
BLOCK = re.compile(r"^(\S+)\n\n(`{3,})\w+\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)


def files(text: str) -> dict[str, str]:
    return {name: body + "\n" for name, _, body in BLOCK.findall(text)}


def for_server(port: int, name: str, **pinned: object) -> Plan:
    return planned(TINY, "A10", "/models/m", name, "0.33", host="127.0.0.1", port=port, **pinned)


@pytest.mark.parametrize("name", ["demo", NAME])
@pytest.mark.parametrize("key", [None, "sk-'$x\" y"])
def test_curl_and_openai_python_get_an_answer(name: str, key: str | None, tmp_path: Path) -> None:
    with serving(Knobs(models=(name,), key=key)) as server:
        pinned = {} if key is None else {"api_key": key}
        plan = for_server(int(server.base_url.rpartition(":")[2]), name, **pinned)
        found = files(render("client", launch_of(plan)))
        for file in ("client.json", ".env"):
            (tmp_path / file).write_text(found[file], encoding="utf-8")
        shellcheck(found["curl"], tmp_path)
        done = subprocess.run(["sh", "-c", found["curl"]], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["choices"]
        done = subprocess.run(
            [sys.executable, "-c", found["openai-python"]], cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Hello" in done.stdout.decode()
        assert [body["model"] for body in server.seen.bodies] == [name, name]


def test_the_article_s_client_json() -> None:
    settings = json.loads(files(render("client", launch_of(PLANS["hub-id"])))["client.json"])
    assert settings == {
        "base_url": "http://localhost:8000/v1",
        "api_key": "EMPTY",
        "model": "Qwen2.5-7B-Instruct",
        "timeout": 120,
        "max_retries": 2,
    }


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://localhost:9/v1"), ("::1", "http://[::1]:9/v1"), ("gpu.lan", "http://gpu.lan:9/v1")],
)
def test_base_url(host: str, url: str) -> None:
    assert base_url(launch_of(planned(TINY, "A10", "/m", "m", "0.33", host=host, port=9))) == url
