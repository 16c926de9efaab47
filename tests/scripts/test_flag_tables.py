"""The generator of the flag tables: a published version made anew equals what is committed; slices run alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


def python(code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path.insert(0, {str(TOP / 'scripts')!r})\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["0.4.3", "0.11.2"])
def test_a_published_version_made_anew_equals_the_committed_table(version: str, tmp_path: Path) -> None:
    command = [sys.executable, str(TOP / "scripts" / "flags"), "--check", "--sources", str(tmp_path), version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("as committed")


def test_only_the_statements_asked_for_run(tmp_path: Path) -> None:
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('never run')\n")
    (package / "a.py").write_text(
        "import torch\nfrom vllm.b import LIMIT\nraise SystemExit('nor this')\n"
        "def twice(n: torch.Tensor) -> torch.Tensor:\n    return LIMIT * n\n"
    )
    (package / "b.py").write_text("LIMIT = 21\nexit(3)\n")
    done = python(
        "from pathlib import Path\nfrom flag_tables.slices import Sources\n"
        f"print(Sources(Path({str(tmp_path)!r}), {{}}).get('vllm.a', 'twice')(2), 'torch' in sys.modules)"
    )
    assert done.stdout == "42 False\n", done.stderr


def test_a_version_that_was_never_published_is_named(tmp_path: Path) -> None:
    command = [sys.executable, str(TOP / "scripts" / "flags"), "--check", "--sources", str(tmp_path), "0.4.99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "0.4.99 could not be downloaded" in done.stderr
    assert not (tmp_path / "0.4.99").exists()
