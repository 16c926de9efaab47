"""An installed vLLM's own parser is asked once and wins, in every verb; without an answer the shipped table serves."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG
from tests.fakes import vllm_install
from trimtab.cli.main import run

FAILS = "raise SystemExit('libcuda.so.1 is not there')\n"


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a vLLM 0.32.0 whose parser has an extra flag, few of the others, and defaults of its own."""
    python = vllm_install.make(tmp_path_factory.mktemp("fork") / "venv")
    vllm_install.add_parser(python)
    return python


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    python = vllm_install.make(tmp_path / "venv")
    vllm_install.add_parser(python, FAILS)
    return python


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "trimtab" / "parsers"


def codes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    found = json.loads(capsys.readouterr().out)
    return [finding["code"] for finding in found["findings"]]


COMMAND = ("--json", "--select", "CMD001", "--", "vllm", "serve", "m", "--of-a-plug-in", "1")


def test_lint_knows_the_extra_flag_and_asks_once(
    fork: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lint", *COMMAND]) == 1
    assert codes(capsys) == ["CMD001"]
    monkeypatch.setenv("VIRTUAL_ENV", str(fork.parent.parent))
    assert run(["lint", *COMMAND]) == 0
    told = capsys.readouterr()
    assert "asking vLLM 0.32.0 for its flags, once" in told.err
    assert json.loads(told.out)["vllm"] == "0.32.0"
    assert len(list(home.glob("0.32.0-*.json"))) == 1
    assert run(["lint", *COMMAND]) == 0
    assert capsys.readouterr().err == ""


def test_found_on_path_and_among_trimtab_s_engines(
    fork: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text(f"#!{fork}\n")
    script.chmod(0o755)
    (fork.parent / "vllm").unlink(missing_ok=True)
    shutil.copy2(script, fork.parent / "vllm")
    monkeypatch.setenv("PATH", f"{fork.parent}{os.pathsep}{os.environ['PATH']}")
    assert run(["lint", *COMMAND]) == 0
    (fork.parent / "vllm").unlink()
    assert run(["lint", *COMMAND]) == 1
    engine = tmp_path / "data" / "trimtab" / "engines" / "cuda-0.32.0"
    engine.mkdir(parents=True)
    marker = {"name": "cuda-0.32.0", "kind": "cuda", "version": "0.32.0", "python": str(fork), "env": {}}
    (engine / "engine.json").write_text(json.dumps(marker))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run(["lint", *COMMAND]) == 0
    assert capsys.readouterr().err.count("asking vLLM") == 1


@pytest.mark.parametrize(("version", "code"), [("0.32", 0), ("v0.32.0", 0), ("0.32.1", 1), ("0.26", 1)])
def test_another_version_is_judged_by_its_table(version: str, code: int, fork: Path) -> None:
    assert run(["lint", "--vllm", version, "--engine-python", str(fork), *COMMAND]) == code


def test_an_image_brings_its_own_vllm(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for image, version in (("vllm/vllm-openai:v0.26.0", "0.26.0"), ("vllm/vllm-openai:v0.32.0", "0.32.0")):
        command = ["docker", "run", image, "--model", "m", "--of-a-plug-in", "1"]
        run(["lint", "--json", "--engine-python", str(fork), "--", *command])
        found = json.loads(capsys.readouterr().out)
        assert found["vllm"] == version
        assert ("CMD001" in [f["code"] for f in found["findings"]]) is (version == "0.26.0")


def test_explain_flags_budget_and_plan_take_its_word(
    fork: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--engine-python", str(fork)]
    assert run(["explain", "max-num-seqs", *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spec"]["default"] == 7
    assert run(["explain", "max-num-seqs", *asked]) == 0
    assert "its own parser" in capsys.readouterr().out
    assert run(["flags", "diff", "0.31", "0.32", *asked, "--json"]) == 0
    assert "--of-a-plug-in" in [f["name"] for f in json.loads(capsys.readouterr().out)["added"]]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    words = ["--model-config", str(config), "--gpu", "24GiB", *asked]
    run(["budget", *words, "--", "vllm", "serve", "m"])
    told = capsys.readouterr()
    assert "gpu_memory_utilization, max_num_seqs" in told.out, told
    run(["plan", "m", *words])
    assert "the installed vLLM does not know --served-model-name" in capsys.readouterr().err


def test_a_parser_that_fails_is_named_and_not_asked_again_soon(
    broken: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lint", "--engine-python", str(broken), *COMMAND]
    for asked in (True, False):
        assert run(words) == 1
        told = capsys.readouterr()
        assert ("asking" in told.err) is asked
        assert "libcuda.so.1 is not there" in told.err
        assert json.loads(told.out)["vllm"] == "0.32.0"
    (failed,) = home.glob("*.failed")
    os.utime(failed, (time.time() - 4000, time.time() - 4000))
    run(words)
    assert "asking" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["", "{", '{"version": "x", "flags": 3}', "\x00"])
def test_a_damaged_answer_in_the_cache_is_asked_for_again(
    damage: str, fork: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lint", "--engine-python", str(fork), *COMMAND]
    run(words)
    (kept,) = home.glob("*.json")
    kept.write_text(damage)
    assert run(words) == 1
    assert "could not be asked" in capsys.readouterr().err
    assert run(words) == 0


def test_a_python_without_vllm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "--engine-python", sys.executable, *COMMAND]) == 2
    assert "has no vLLM" in capsys.readouterr().err
