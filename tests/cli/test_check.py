"""`trimtab check` as a process, on this host with faults made for the case; and `up`, which is stopped by them."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_up import environment
from trimtab.rules import registry

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4932307584\n"


HOSTS = Path(__file__).parents[1] / "fixtures" / "hosts"  # written by `trimtab check --write-record` there


def trimtab(
    home: Path, *words: str, more: dict[str, str] | None = None, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    env = environment(home)
    for name in ("HF_HUB_OFFLINE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        env.pop(name, None)
    return subprocess.run(
        [sys.executable, "-m", "trimtab", *words], env={**env, **(more or {})}, capture_output=True, text=True,
        timeout=60, check=False, preexec_fn=before,
    )  # fmt: skip


def codes(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [finding["code"] for finding in json.loads(done.stdout)["findings"]]


def test_this_host_is_sound_for_a_small_model(home: Path, model: Path, python: Path) -> None:
    done = trimtab(home, "check", str(model), "--engine-python", str(python), "--json")
    report = json.loads(done.stdout)
    assert report["schema"] == "trimtab.findings/1"
    assert not [f for f in report["findings"] if f["severity"] == "error"]


def test_without_an_engine_it_says_so_and_checks_the_rest(home: Path) -> None:
    done = trimtab(home, "check", more={"PATH": "/usr/bin:/bin", "http_proxy": "http://proxy.example:3128"})
    assert "no vLLM" in done.stderr
    assert done.returncode == 1
    assert "HST302 proxy-catching-loopback" in done.stdout


def test_a_taken_port_and_who_has_it(home: Path, model: Path, python: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("--engine-python", str(python), "--json", "--", "vllm", "serve", str(model), "--port", port)
        done = trimtab(home, "check", *words)
    assert done.returncode == 1
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["code"] == "HST301"]
    assert "python" in found["message"]


@pytest.mark.parametrize(
    "words", [("--port", "99999"), ("--port", "x"), ("--host", "no-such-host.invalid", "--port", "8000")]
)
def test_an_address_that_is_none_is_not_called_taken(home: Path, model: Path, python: Path, words: tuple[str]) -> None:
    done = trimtab(home, "check", "--engine-python", str(python), "--json", "--", "vllm", "serve", str(model), *words)
    assert "HST301" not in codes(done)


def test_pointers_instead_of_weights(home: Path, model: Path, python: Path) -> None:
    (model / "model.safetensors").write_text(POINTER)
    done = trimtab(home, "check", str(model), "--engine-python", str(python), "--json")
    assert "HST205" in codes(done)


@pytest.mark.parametrize(
    ("files", "flags", "absent"),
    [
        ((), (), "config.json, weights (*.safetensors, *.bin, *.pt)"),
        (("config.json", "optimizer.pt"), (), "weights (*.safetensors, *.bin, *.pt)"),
        (("model.safetensors",), (), "config.json"),
        (("model.safetensors", "config.json"), (), ""),
        (("consolidated.safetensors", "params.json"), (), ""),
        (("model-Q4_K_M.gguf",), (), ""),
        (("config.json",), ("--load-format", "dummy"), ""),
        (("pytorch_model.bin",), ("--hf-config-path", "org/base"), ""),
    ],
)
def test_a_directory_that_is_no_model(
    home: Path, python: Path, files: tuple[str, ...], flags: tuple[str, ...], absent: str
) -> None:
    empty = home / "no-model"
    empty.mkdir(parents=True)
    for name in files:
        (empty / name).write_text("{}")
    done = trimtab(home, "check", "--engine-python", str(python), "--json", "--", "vllm", "serve", str(empty), *flags)
    said = [f["message"] for f in json.loads(done.stdout)["findings"] if f["code"] == "HST210"]
    assert [text.partition(" holds no ")[2].partition(": name")[0] for text in said] == ([absent] if absent else [])
    assert done.returncode == (1 if absent else done.returncode)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def test_few_open_files(home: Path) -> None:
    assert "HST401" in codes(trimtab(home, "check", "--json", before=limited))


def test_the_hub_is_off_and_the_model_is_not_here(home: Path, python: Path) -> None:
    more = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home / "hub"), "HF_TOKEN": "'hf_quoted'"}
    done = trimtab(home, "check", "some-org/some-model", "--engine-python", str(python), "--json", more=more)
    assert {"HST206", "HST207"} <= set(codes(done))
    assert "quoted" not in done.stdout


def test_a_recorded_host_is_judged_again(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "host.json"
    assert trimtab(home, "check", "--write-record", str(file)).returncode in (0, 1)
    record = json.loads(file.read_text())
    record["gpu_trouble"], record["pci_gpus"] = "mismatch", 1
    file.write_text(json.dumps(record))
    done = trimtab(home, "check", "--record", str(file), "--json")
    assert done.returncode == 1
    assert "HST005" in codes(done)


def test_the_record_of_a_real_h200_finds_nothing_wrong(home: Path) -> None:
    done = trimtab(home, "check", "--record", str(HOSTS / "h200.json"), "--json")
    assert done.returncode == 0, done.stdout
    assert codes(done) == []


@pytest.mark.parametrize("text", ["", "[]", '{"cards": 1}', "\udcff"])
def test_what_is_no_record(home: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "host.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = trimtab(home, "check", "--record", str(file))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_select_names_host_rules_alone(home: Path) -> None:
    assert trimtab(home, "check", "--select", "HST302").returncode == 0
    assert trimtab(home, "check", "--select", "CMD001").returncode == 2


def test_up_stops_on_an_error_unless_forced(home: Path, model: Path, python: Path) -> None:
    (model / "model.safetensors").write_text(POINTER)
    command = ("--engine-python", str(python), "--no-verify")
    stopped = trimtab(home, "up", *command, "--", "vllm", "serve", str(model))
    assert stopped.returncode == 2
    assert "HST205" in stopped.stderr
    assert "--force" in stopped.stderr
    more = {"FAKE_ENGINE": "--die loading"}
    forced = trimtab(home, "up", *command, "--force", "--", "vllm", "serve", str(model), more=more)
    assert "HST205" in forced.stderr
    assert "this host cannot start it" not in forced.stderr


def test_up_tells_of_a_warning_and_goes_on(home: Path, model: Path, python: Path) -> None:
    more = {"http_proxy": "http://proxy.example:3128", "FAKE_ENGINE": "--die loading"}
    done = trimtab(home, "up", "--engine-python", str(python), "--no-verify", str(model), more=more)
    assert "HST302 proxy-catching-loopback" in done.stderr
    assert "this host cannot start it" not in done.stderr


def test_every_host_rule_is_explained(home: Path) -> None:
    done = trimtab(home, "explain", "HST301")
    assert done.returncode == 0
    assert "HST301" in registry.RULES
