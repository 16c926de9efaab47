"""Which engine a verb takes for the cards of a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.cli.engines import choose_engine
from trimtab.cli.settings import engines_root
from trimtab.errors import HostError
from trimtab.facts.probe.gpus import Gpu
from trimtab.supervisor.environments import Engine, write_engine

V100 = Gpu(0, "GPU-0", "Tesla V100-SXM2-32GB", 32 << 30, 32 << 30, (7, 0))
H200 = Gpu(0, "GPU-0", "NVIDIA H200", 140 << 30, 140 << 30, (9, 0))


@pytest.fixture(autouse=True)
def two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    for version in ("0.19.1", "0.33.0"):
        directory = engines_root() / f"cuda-{version}"
        directory.mkdir(parents=True)
        write_engine(directory, Engine(directory.name, "cuda", version, directory / "bin" / "python", {}))


def test_the_newest_that_is_built_for_the_oldest_card() -> None:
    assert choose_engine(None, None, [H200]).version == "0.33.0"
    assert choose_engine(None, None, [H200, V100]).version == "0.19.1"


def test_none_is_built_for_the_card() -> None:
    (engines_root() / "cuda-0.19.1" / "engine.json").unlink()
    with pytest.raises(HostError, match=r"V100-SXM2-32GB has compute capability 7\.0; cuda-0\.33\.0") as caught:
        choose_engine(None, None, [V100])
    assert "trimtab engine install cuda --version 0.19.1" in str(caught.value.hint)
