"""The check for duplicate code: what stands twice is over its threshold, the sources are below it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def duplicates_in(folder: Path) -> int:
    """The exit code of the command in scripts/check, on another folder."""
    line = re.search(r'^"\$bin/jscpd" src/trimtab (.+?)  #', (ROOT / "scripts" / "check").read_text(), re.MULTILINE)
    assert line
    tool = Path(sys.executable).with_name("jscpd")
    return subprocess.run([tool, folder, *line[1].split()], capture_output=True, check=False).returncode


def test_what_stands_twice_is_found(tmp_path: Path) -> None:
    text = (ROOT / "src" / "trimtab" / "plan" / "parallel.py").read_text()
    (tmp_path / "one.py").write_text(text)
    assert duplicates_in(tmp_path) == 0
    (tmp_path / "two.py").write_text(text)
    assert duplicates_in(tmp_path) == 1
