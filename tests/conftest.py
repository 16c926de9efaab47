"""What tests of the real engine share: one CPU engine and one demo model per machine, one running server per run."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port
from trimtab.cli.settings import dirs
from trimtab.supervisor.demo import prepare_demo_model
from trimtab.supervisor.environments import Engine, vllm_argv
from trimtab.supervisor.install import install_cpu
from trimtab.supervisor.progress import Progress
from trimtab.supervisor.requirements import this_host

START_S = 300
VLLM_TEST_S = 900  # the first one waits for the install, the model and the start


def pytest_configure() -> None:
    """A run started in the background inherits an ignored SIGINT; the children that tests interrupt must not."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real engine get the time that preparing it takes."""
    for item in items:
        if item.get_closest_marker("vllm") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(VLLM_TEST_S))


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are English unless a test says otherwise; the door leaves its language in the environment."""
    monkeypatch.setenv("TRIMTAB_LANG", "en")


@pytest.fixture(autouse=True)
def no_engine_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A vLLM that whoever runs the tests has installed decides no verdict."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "no-data"))


@dataclass(frozen=True)
class DemoServer:
    """The shared server: its URL up to and with `/v1`, and its log."""

    base_url: str
    log: Path
    model: str
    max_model_len: int


@pytest.fixture(scope="session")
def test_cache() -> Path:
    """Outlives a run: TRIMTAB_TEST_CACHE, else under the user's cache directory."""
    named = os.environ.get("TRIMTAB_TEST_CACHE")
    cache = Path(named) if named else dirs().cache / "tests"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


@pytest.fixture(scope="session")
def cpu_engine(test_cache: Path) -> Engine:
    """The real CPU build of vLLM, installed by Trimtab's own code the first time a test wants it.

    TRIMTAB_TEST_PYTHON names the Python to make it with; by default the one that runs the tests.
    """
    named = os.environ.get("TRIMTAB_TEST_PYTHON")
    return install_cpu(test_cache / "engines", None, _ignore, this_host(Path(named) if named else None))


@pytest.fixture(scope="session")
def demo_model(test_cache: Path, cpu_engine: Engine) -> Path:
    """The demo model's directory; tests must not write to it."""
    return prepare_demo_model(test_cache / "models", cpu_engine, _ignore)


@pytest.fixture(scope="session")
def demo_server(cpu_engine: Engine, demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    """One vLLM server of the demo model, started without Trimtab, ended with its whole group."""
    log, length = tmp_path_factory.mktemp("demo-server") / "vllm.log", 2048
    with serving(cpu_engine, demo_model, "demo", log, "--max-model-len", str(length)) as base_url:
        yield DemoServer(base_url, log, "demo", length)


@contextmanager
def serving(engine: Engine, model: Path, name: str, log: Path, *words: str) -> Iterator[str]:
    """A vLLM server that has answered; its URL up to and with `/v1`."""
    port = free_port()
    argv = [*vllm_argv(engine), "serve", str(model), "--served-model-name", name, "--enforce-eager"]
    argv += ["--host", "127.0.0.1", "--port", str(port), *words]
    quiet = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    quiet["VLLM_ENABLE_RESPONSES_API_STORE"] = "1"
    with log.open("wb") as out:
        child = subprocess.Popen(
            argv,
            env={**os.environ, **engine.env, **quiet},
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _await_health(child, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            _end(child)


def _ignore(step: Progress) -> None:
    """Tests watch the result, not the way there."""


def _await_health(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            pytest.fail(f"vLLM ended with {child.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=2) as answer:
            if answer.status == 200:
                return
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.5)
    pytest.fail(f"vLLM was not ready after {START_S} s:\n{log.read_text(errors='replace')[-3000:]}")


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(20)
