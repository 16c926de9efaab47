"""Engines are found where they are: installed ones by their marker, others by asking their Python."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from trimtab.errors import HostError, UsageError
from trimtab.supervisor.environments import (
    MARKER,
    Engine,
    Repair,
    find_external,
    installed,
    read_engine,
    remove,
    write_engine,
)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that someone else made, with a vLLM and its `vllm` script in it."""
    top = tmp_path_factory.mktemp("foreign") / "env"
    venv.create(top, with_pip=False)
    site = next(top.glob("lib/python*/site-packages"))
    (site / "vllm").mkdir()
    (site / "vllm" / "__init__.py").write_text("")
    (site / "vllm-0.26.0+cu129.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.26.0+cu129\n"
    (site / "vllm-0.26.0+cu129.dist-info" / "METADATA").write_text(metadata)
    script = top / "bin" / "vllm"
    script.write_text(f"#!{top}/bin/python\n")
    script.chmod(0o755)
    return top


def test_named_python(foreign: Path) -> None:
    found = find_external(foreign / "bin" / "python", os.environ, None)
    assert found == Engine("external-0.26.0+cu129", "external", "0.26.0", foreign / "bin" / "python", {})


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_active_environment(foreign: Path, variable: str) -> None:
    found = find_external(None, {**os.environ, variable: str(foreign)}, "")
    assert found is not None
    assert found.version == "0.26.0"


def test_vllm_on_path(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "vllm").symlink_to(foreign / "bin" / "vllm")
    found = find_external(None, {"HOME": "/nonexistent"}, str(tmp_path))
    assert found is not None
    assert found.python == foreign / "bin" / "python"


def test_none_there(tmp_path: Path) -> None:
    assert find_external(None, {"VIRTUAL_ENV": str(tmp_path)}, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("python", "said"), [(Path(sys.executable), "has no vLLM"), (Path("/nonexistent/python"), "there is no program")]
)
def test_named_python_without_vllm(python: Path, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        find_external(python, os.environ, None)
    assert str(python) in str(caught.value)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    directory = tmp_path / "cpu-1.0"
    directory.mkdir()
    repairs = (Repair("metadata", "a", "b", "c"),)
    engine = Engine("cpu-1.0", "cpu", "1.0", directory / "bin" / "python", {"LD_PRELOAD": "x"}, repairs, 5)
    write_engine(directory, engine)
    assert read_engine(directory) == engine
    assert remove(tmp_path, "cpu-1.0") == directory
    assert installed(tmp_path) == []


def test_damaged_marker_names_the_engine(tmp_path: Path) -> None:
    (tmp_path / "cpu-1.0").mkdir()
    (tmp_path / "cpu-1.0" / MARKER).write_text("{")
    with pytest.raises(HostError, match=r"engine cpu-1\.0: engine\.json cannot be read"):
        installed(tmp_path)
    remove(tmp_path, "cpu-1.0")
