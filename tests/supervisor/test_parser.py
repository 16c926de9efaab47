"""The parser of a vLLM that is there: asked in its own environment, kept, and ended when it hangs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.fakes import vllm_install
from trimtab.engine.flags import FlagTable
from trimtab.engine.flags.dump import from_parser_dump
from trimtab.supervisor.environments import Engine, write_engine
from trimtab.supervisor.parser import parser_of
from trimtab.supervisor.present import Present, find_present
from trimtab.supervisor.progress import Progress

HANGS = """
import subprocess, sys
subprocess.Popen(["sleep", "600"])
subprocess.run(["sleep", "600"])
"""


def ignore(step: Progress) -> None:
    """Only the answer counts here."""


def present(python: Path) -> Present:
    found = find_present(python, {}, python)
    assert found is not None
    return found


def test_a_parser_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    python = vllm_install.make(tmp_path / "venv")
    vllm_install.add_parser(python, HANGS)
    started = time.monotonic()
    answer = parser_of(present(python), tmp_path / "cache", os.environ, ignore, timeout_s=1.0)
    assert (answer.dump, answer.reason) == (None, "")
    assert time.monotonic() - started < 15


def test_another_vllm_in_the_same_place_is_asked_anew(tmp_path: Path) -> None:
    python = vllm_install.make(tmp_path / "venv")
    vllm_install.add_parser(python)
    cache = tmp_path / "cache"
    before = present(python)
    assert parser_of(before, cache, os.environ, ignore).dump
    assert before.metadata is not None
    os.utime(before.metadata, (1, 1))
    asked: list[Progress] = []
    parser_of(present(python), cache, os.environ, asked.append)
    assert len(asked) == 1


def test_a_folder_named_vllm_beside_the_user_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = vllm_install.make(tmp_path / "venv")
    vllm_install.add_parser(python)
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    answer = parser_of(present(python), tmp_path / "cache", {**os.environ, "PYTHONPATH": str(tmp_path)}, ignore)
    assert answer.dump is not None, answer.reason


def test_what_cannot_be_read_is_no_vllm(tmp_path: Path) -> None:
    engine = tmp_path / "engines" / "cpu-1.0"
    engine.mkdir(parents=True)
    (engine / "engine.json").write_text("{")
    script = tmp_path / "bin" / "vllm"
    script.parent.mkdir()
    script.write_bytes(b"\x7fELF\xff\xfe")
    script.chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (script.parent, tmp_path / "link"):
        assert find_present(None, {"PATH": str(path), "VIRTUAL_ENV": str(tmp_path / "link")}, engine.parent) is None


def test_the_newest_cuda_engine_comes_first(tmp_path: Path) -> None:
    for name, kind, version in (("a", "cpu", "0.33.0"), ("b", "cuda", "0.9.2"), ("c", "cuda", "0.19.1")):
        (tmp_path / name).mkdir()
        engine = Engine(
            name, "cpu" if kind == "cpu" else "cuda", version, tmp_path / name / "bin" / "python", {"A": "1"}
        )
        write_engine(tmp_path / name, engine)
    found = find_present(None, {"PATH": ""}, tmp_path)
    assert found == Present(tmp_path / "c" / "bin" / "python", "0.19.1", None, {"A": "1"})


@pytest.mark.vllm
def test_the_real_parser_equals_the_table(cpu_engine: Engine, tmp_path: Path) -> None:
    here = present(cpu_engine.python)
    there = Present(here.python, here.version, here.metadata, cpu_engine.env)
    answer = parser_of(there, tmp_path, os.environ, ignore)
    assert answer.dump is not None, answer.reason
    told, table = from_parser_dump(answer.dump), FlagTable.for_version(cpu_engine.version, "cpu")
    assert (told.version, told.build) == (cpu_engine.version, "cpu")
    assert {f.name: (f.kind, f.default, f.values, f.entry) for f in told.flags} == {
        f.name: (f.kind, f.default, f.values, f.entry) for f in table.flags
    }
    assert [v.name for v in told.environment] == [v.name for v in table.environment]
    assert told.own_defaults == {}
