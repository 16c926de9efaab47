"""`trimtab up` as a process over a stand-in for vLLM: what it prints, its exit codes, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import psutil
import pytest

from tests.cli.conftest import CONFIG
from tests.fakes import vllm_install
from tests.supervisor.fake import wait_for
from trimtab.engine.registry import ServerRecord
from trimtab.supervisor import registry
from trimtab.supervisor.journal import SERVING, read_journal


def environment(home: Path, knobs: str = "") -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TRIMTAB_", "VIRTUAL_ENV"))}
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "STATE", "CACHE", "CONFIG")}
    return {**kept, **places, "FAKE_ENGINE": knobs, "TRIMTAB_LANG": "en", "HF_HUB_OFFLINE": "1"}


def up(home: Path, *words: str, knobs: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "up", *words], env=environment(home, knobs), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@contextmanager
def running(home: Path, *words: str, knobs: str = "") -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "trimtab", "up", *words], env=environment(home, knobs), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill() if child.poll() is None else None
        child.communicate()


def record(home: Path, state: str) -> ServerRecord | None:
    return next((r for r in registry.records(home / "state" / "trimtab") if r.state == state), None)


def left_over(home: Path) -> list[int]:
    """Processes whose environment names this test's home."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("XDG_STATE_HOME") == str(home / "state") and process.status() != "zombie":
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def clear(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """One clear error that names the thing and the next step, and no traceback."""
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    assert "\n  -> " in done.stderr


@pytest.mark.parametrize("words", [("--no-verify",), ()], ids=["plain", "verified"])
def test_supervisor_and_guard_stay_small(home: Path, model: Path, python: Path, words: tuple[str, ...]) -> None:
    with running(home, str(model), "--engine-python", str(python), *words) as child:
        seen = wait_for(lambda: record(home, "ready"))
        journal = home / "state" / "trimtab" / "servers" / seen.name
        wait_for(lambda: any(entry.what == SERVING for entry in read_journal(journal)))
        resident = [psutil.Process(pid).memory_info().rss for pid in (seen.pid, seen.group)]
        assert sum(resident) < 57 * 2**20
        child.terminate()
        child.communicate(timeout=30)


def test_serves_until_interrupted_and_leaves_nothing(home: Path, model: Path, python: Path) -> None:
    with running(home, str(model), "--engine-python", str(python), "--no-verify") as child:
        seen = wait_for(lambda: record(home, "ready"))
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 0
    for part in (seen.base_url, seen.api_key, "tiny-llama", "curl -s", "OpenAI(", "--max-model-len 8192"):
        assert part in out
    assert "no process of it is left" in err
    assert left_over(home) == []
    assert record(home, "stopped")


def test_a_server_that_is_asked_to_stop_is_not_verified_to_the_end(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--drain", "1")
    with running(home, *words, knobs="--core --token-s 3") as child:
        assert child.stderr is not None
        assert any("one_request" in line for line in child.stderr)  # it is being verified
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "not verified to the end: the server was asked to stop" in err
    assert "no_oom" not in out + err
    assert "serving" not in err


def test_a_closed_terminal_does_not_end_what_nohup_started(home: Path, model: Path, python: Path) -> None:
    argv = ["nohup", sys.executable, "-m", "trimtab", "up", str(model), "--engine-python", str(python), "--no-verify"]
    child = subprocess.Popen(argv, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: record(home, "ready"))
        child.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    finally:
        child.kill() if child.poll() is None else None
    assert child.returncode == 0
    assert left_over(home) == []


def test_two_servers_do_not_collide(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify")
    with running(home, *words) as first, running(home, *words) as second:
        wait_for(lambda: len([r for r in registry.live(home / "state" / "trimtab") if r.state == "ready"]) == 2)
        live = registry.live(home / "state" / "trimtab")
        assert len({r.port for r in live}) == len({r.name for r in live}) == 2
        for child in (first, second):
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=30)
        assert (first.returncode, second.returncode) == (0, 0)
    assert left_over(home) == []


def test_a_launch_command_is_taken_as_it_is(home: Path, model: Path, python: Path) -> None:
    words = ("--engine-python", str(python), "--no-verify", "--", "vllm", "serve", str(model), "--max-model-len", "512",
             "--served-model-name", "mine")  # fmt: skip
    with running(home, *words) as child:
        seen = wait_for(lambda: record(home, "ready"))
        assert seen.models == ("mine",)
        assert "512" in seen.argv
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert child.returncode == 0


def test_detached_then_down(home: Path, model: Path, python: Path) -> None:
    done = up(home, str(model), "--engine-python", str(python), "--no-verify", "-d", "--name", "mine")
    assert done.returncode == 0
    assert record(home, "ready")
    down = subprocess.run(
        [sys.executable, "-m", "trimtab", "down", "mine"], env=environment(home), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert down.returncode == 0
    assert left_over(home) == []


def test_unknown_flag(home: Path, model: Path, python: Path) -> None:
    done = up(home, str(model), "--engine-python", str(python), "--", "--no-such-flag")
    assert done.returncode == 1
    clear(done, "unrecognized arguments: --no-such-flag")
    assert left_over(home) == []


def test_missing_model_directory(home: Path, python: Path, tmp_path: Path) -> None:
    done = up(home, str(tmp_path / "nowhere"), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, str(tmp_path / "nowhere"))


def test_config_that_is_not_json(home: Path, model: Path, python: Path) -> None:
    (model / "config.json").write_text("{not json")
    done = up(home, str(model), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, "config.json", "JSON")


def test_unknown_architecture(home: Path, model: Path, python: Path) -> None:
    (model / "config.json").write_text(json.dumps({**CONFIG, "architectures": ["LlamaForCausalIM"]}))
    done = up(home, str(model), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, "LlamaForCausalIM", "LlamaForCausalLM")


def test_port_taken(home: Path, model: Path, python: Path) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = up(home, str(model), "--engine-python", str(python), "--port", port)
    assert done.returncode == 2
    clear(done, port, str(os.getpid()))


def test_no_permission_for_state(home: Path, model: Path, python: Path) -> None:
    home.mkdir()
    (home / "state").write_text("a file where a directory must be")
    done = up(home, str(model), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, str(home / "state"))


def test_no_engine(home: Path, model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "up", str(model)], env={**environment(home), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    clear(done, "trimtab engine install")


def test_interrupt_during_load(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify")
    with running(home, *words, knobs="--hold load") as child:
        wait_for(lambda: record(home, "loading") or record(home, "compiling"))
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert child.returncode == 0
    assert left_over(home) == []


def test_engine_killed_during_load(home: Path, model: Path, python: Path) -> None:
    words = (str(model), "--engine-python", str(python), "--no-verify")
    with running(home, *words, knobs="--hold load") as child:
        seen = wait_for(lambda: record(home, "loading") or record(home, "compiling"))
        os.kill(seen.engine_pid, signal.SIGKILL)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 1
    assert "Traceback" not in err
    assert "killed" in err.lower() or "SIGKILL" in err
    assert left_over(home) == []


def test_a_container_command_is_refused_with_the_reason(home: Path, tmp_path: Path, python: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("docker run --gpus all vllm/vllm-openai:v0.26.0 --model Qwen/Qwen2.5-7B-Instruct\n")
    done = up(home, str(script), "--engine-python", str(python))
    assert done.returncode == 2
    clear(done, "docker run")


def test_nothing_to_serve(home: Path) -> None:
    done = up(home)
    assert done.returncode == 2
    clear(done)


def test_what_does_not_fit_is_not_started(home: Path, model: Path, python: Path) -> None:
    (model / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": 32768, "intermediate_size": 131072}))
    done = up(home, str(model), "--engine-python", str(python), "--concurrency", "64")
    assert done.returncode == 2
    clear(done, "does not fit")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--devices", "9"), ("there is no card 9 here",)),
        (("--devices", ""), ("--devices names no card",)),
        (("--host", ""), ("--host is empty",)),
        (("--name", "../x"), ("'../x' is no server name",)),
    ],
)
def test_place_that_cannot_be_is_refused_before_planning(
    home: Path, model: Path, python: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    done = up(home, str(model), "--engine-python", str(python), *words)
    assert (done.returncode, done.stdout) == (2, "")
    clear(done, *parts)
    assert not (home / "state").exists()


def test_number_of_gpus_that_is_no_number(home: Path, model: Path, python: Path) -> None:
    done = up(home, "--engine-python", str(python), "--", "vllm", "serve", str(model), "--tensor-parallel-size", "x")
    assert done.returncode == 2
    clear(done, "--tensor-parallel-size does not take 'x'")


def test_a_written_plan_starts(home: Path, model: Path, python: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    with file.open("w") as out:
        subprocess.run(
            [sys.executable, "-m", "trimtab", "plan", str(model), "--gpu", "cpu", "--json"],
            env=environment(home), stdout=out, timeout=60, check=True,
        )  # fmt: skip
    with running(home, str(file), "--engine-python", str(python), "--no-verify") as child:
        wait_for(lambda: record(home, "ready"))
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
    assert child.returncode == 0
    assert left_over(home) == []


def test_a_flag_that_the_engine_s_own_parser_lacks_is_refused_before_the_start(
    home: Path, model: Path, tmp_path: Path
) -> None:
    python = vllm_install.make(tmp_path / "venv")
    vllm_install.add_parser(python)
    done = up(home, "--engine-python", str(python), "--", "vllm", "serve", str(model), "--max-num-seqs", "x", "--odd")
    assert done.returncode == 2
    assert "vLLM 0.32.0 does not have --odd" in done.stderr
    assert "CMD001 flag-unknown" in done.stderr
    assert not list((home / "state").rglob("engine.log"))
