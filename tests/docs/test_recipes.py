"""CONTRIBUTING's recipe for a rule works when it is followed to the letter, in a copy of the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_rule_of_the_recipe_is_found_by_lint_and_keeps_the_contracts(tmp_path: Path) -> None:
    for part in ("src", "docs/rules", "tests/rules", "tests/contracts", "scripts"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/ports.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    module, line = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (name,) = re.findall(r"Write `(src/trimtab/rules/command/\w+\.py)`", PAGE)
    (tmp_path / name).write_text(module, encoding="utf-8")
    registry = tmp_path / "src/trimtab/rules/registry.py"
    rows = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(n for n, row in enumerate(rows) if re.match(r'    "CMD\d+', row) and row > line)
    registry.write_text("".join([*rows[:at], line, *rows[at:]]), encoding="utf-8")
    python = [sys.executable, "-W", "error"]
    env = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    made = ran(*python, "scripts/docs")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "docs/rules/CMD290.md").is_file()
    linted = ran(*python, "-m", "trimtab", "lint", "vllm serve m --port 80", "--select", "CMD290")
    assert linted.returncode == 1
    assert "warning CMD290 port-below-1024\n" in linted.stdout
    tests = ["tests/contracts/test_registry.py", "tests/contracts/test_rule_docs.py", "tests/rules/test_examples.py"]
    kept = ran(*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", "CMD290 or not CMD")
    assert kept.returncode == 0, kept.stdout[-3000:]


def test_pages_that_are_named_are_there() -> None:
    for page in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/install.md", "docs/api.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"
        for script in re.findall(r"\bscripts/\w+", text):
            assert (ROOT / script).exists(), f"{page}: {script}"
