"""Every option is declared once, in cli/options.py; help, verbs and documentation agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.cli.main import VERBS

TOP = Path(__file__).parents[2]
CLI = TOP / "src" / "trimtab" / "cli"


def test_options_are_declared_in_one_file() -> None:
    stray = [
        p.name for p in CLI.glob("*.py") if p.name not in ("options.py", "main.py") and "typer.Option(" in p.read_text()
    ]
    assert not stray


def test_every_declared_option_is_used() -> None:
    names = re.findall(r"^(\w+) = Annotated", (CLI / "options.py").read_text(), re.MULTILINE)
    sources = "\n".join(p.read_text() for p in CLI.glob("*.py") if p.name != "options.py")
    assert not [name for name in names if not re.search(rf"\b{name}\b", sources)]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_a_place_in_the_readme(verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", verb, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "Usage: trimtab" in done.stdout
    assert f"trimtab {verb}" in (TOP / "README.md").read_text()
