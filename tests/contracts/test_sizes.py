"""Files and functions stay small; the allow-lists may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "trimtab"
FILE_LINES, FUNCTION_LINES = 400, 60
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}


def test_files_are_short() -> None:
    lines = {str(p.relative_to(SRC)): len(p.read_text().splitlines()) for p in SRC.rglob("*.py")}
    long = {f: n for f, n in lines.items() if n > LONG_FILES.get(f, FILE_LINES)}
    assert not long
    stale = {f for f in LONG_FILES if lines.get(f, 0) <= FILE_LINES}
    assert not stale, f"shrink the allow-list: {stale}"


def test_functions_are_short() -> None:
    long: dict[str, int] = {}
    seen: dict[str, int] = {}
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{path.relative_to(SRC)}:{node.name}"
                seen[name] = (node.end_lineno or node.lineno) - node.lineno + 1
                if seen[name] > LONG_FUNCTIONS.get(name, FUNCTION_LINES):
                    long[name] = seen[name]
    assert not long
    stale = {f for f in LONG_FUNCTIONS if seen.get(f, 0) <= FUNCTION_LINES}
    assert not stale, f"shrink the allow-list: {stale}"


def test_no_module_without_a_subject() -> None:
    names = {p.stem for p in SRC.rglob("*.py")} | {p.name for p in SRC.rglob("*") if p.is_dir()}
    assert not names & BANNED_NAMES


def test_every_module_says_what_it_is_for() -> None:
    missing = [str(p.relative_to(SRC)) for p in SRC.rglob("*.py") if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not missing
