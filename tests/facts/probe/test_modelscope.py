"""Downloads from ModelScope by its own client, in processes of their own, for its settings are the environment."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.facts.probe.test_hub import FILES, ID, WEIGHTS
from tests.facts.probe.test_hub_interrupted import PROGRAM
from tests.fakes.modelscope_server import FakeModelScope, serve_modelscope


@pytest.fixture
def server() -> Iterator[FakeModelScope]:
    with serve_modelscope() as found:
        found.models[ID] = dict(FILES)
        yield found


def run(endpoint: str, home: Path, model_id: str = ID, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "MODELSCOPE"))}
    env = {**kept, "VLLM_USE_MODELSCOPE": "True", "MODELSCOPE_ENDPOINT": endpoint, "MODELSCOPE_CACHE": str(home),
           "MODELSCOPE_HOME": str(home / "home"), "HOME": str(home), **more}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, model_id], env=env, capture_output=True, text=True, timeout=120
    )


def test_brings_only_what_vllm_needs_and_finds_it_again_offline(server: FakeModelScope, tmp_path: Path) -> None:
    done = run(server.endpoint, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    *progress, path = done.stdout.splitlines()
    names = {p.name for p in Path(path).iterdir() if not p.name.startswith(".")}
    assert names == {"config.json", "tokenizer.json", "model.safetensors.index.json", *WEIGHTS}
    total = sum(len(FILES[name]) for name in names)
    assert progress[-1] == f"{total} {total}"
    server.paths.clear()
    again = run(server.endpoint, tmp_path, HF_HUB_OFFLINE="1")
    assert (again.returncode, again.stdout.strip()) == (0, path)
    assert not server.paths


def test_missing(server: FakeModelScope, tmp_path: Path) -> None:
    done = run(server.endpoint, tmp_path, "zzz/yyy")
    assert done.returncode == 2
    assert done.stderr.startswith("ModelScope has no model zzz/yyy")


def test_denied(server: FakeModelScope, tmp_path: Path) -> None:
    server.denied.add(ID)
    done = run(server.endpoint, tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ModelScope does not let you read {ID}")
    assert "MODELSCOPE_API_TOKEN" in done.stderr


def test_offline_and_not_cached(server: FakeModelScope, tmp_path: Path) -> None:
    done = run(server.endpoint, tmp_path, HF_HUB_OFFLINE="1")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{ID} is not in ModelScope's cache")


def test_without_weights(server: FakeModelScope, tmp_path: Path) -> None:
    server.models[ID] = {"config.json": b"{}", "README.md": b"x"}
    done = run(server.endpoint, tmp_path)
    assert "holds no weights on ModelScope; it holds .json, .md" in done.stderr


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        done = run(f"http://127.0.0.1:{taken.getsockname()[1]}", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("cannot reach ModelScope")
