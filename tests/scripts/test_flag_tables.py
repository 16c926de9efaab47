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


def test_who_reads_a_flag_and_who_refuses_it(tmp_path: Path) -> None:
    package = tmp_path / "vllm"
    sources = {
        "engine/llm_engine.py": "import x\nclass LLMEngine: ...\n",
        "engine/arg_utils.py": (
            "class EngineArgs:\n"
            "    def create(self):\n"
            "        return Config(delay=self.old_delay, new=self.new, both=self.both, lora=L if self.lora else None)\n"
            "    def _is_v1_supported_oracle(self, model):\n"
            "        if model is not None and self.refused != 1 and self.both > 1:\n"
            "            _raise_or_fallback('x')\n"
            "            return False\n"
            "        return True\n"
        ),
        "core/scheduler.py": "def f(c):\n    return c.delay, c.both, c.lora\n",
        "v1/engine/core.py": "def f(c):\n    return getattr(c, 'new'), c.both\n",
    }
    for name, text in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    done = python(
        "from pathlib import Path\nfrom flag_tables.generations import engines, meanings\n"
        f"root = Path({str(tmp_path)!r})\nprint(engines(root, True), engines(root, False))\n"
        "names = ('--old-delay', '--new', '--both', '--lora', '--refused')\n"
        "print(meanings(root, ['V1', 'V0'], {n: {} for n in names}))"
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "['V1', 'V0'] ['V0', 'V1']"
    assert second == str(
        {"--old-delay": {"engine": "V0"}, "--new": {"engine": "V1"}, "--refused": {"unsupported": ["V1"]}}
    )
