"""Where Trimtab keeps its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.cli.settings import dirs


def test_directories_follow_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/none")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert dirs().state == tmp_path / "trimtab"
    assert dirs().data == Path.home() / ".local/share/trimtab"
    assert dirs().cache == Path.home() / ".cache/trimtab"
