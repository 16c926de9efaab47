"""The house: which room may import which, and which rooms do no I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "trimtab"

MAY_IMPORT = {
    "shipped": set(),
    "messages": set(),
    "errors": {"messages"},
    "facts": set(),
    "engine": set(),
    "plan": {"facts", "engine"},
    "rules": {"facts", "engine", "plan"},
    "supervisor": {"engine"},
    "bench": {"engine"},
    "gateway": {"engine"},
    "connect": {"engine", "rules"},
    "console": {"facts", "engine", "plan", "rules", "supervisor", "bench", "gateway", "connect"},
}
MORE = {
    "bench/tune.py": {"facts", "plan", "rules", "supervisor"},
    "bench/verify.py": {"facts", "plan", "rules", "supervisor"},
}
DOORS = {"cli", "api", "__init__", "__main__"}
EVERYONE = {"errors", "messages", "shipped"}
PURE = ("facts", "engine", "plan", "rules", "messages")
PURE_FILES = (
    "supervisor/states.py",
    "supervisor/policy.py",
    "bench/load.py",
    "bench/stats.py",
    "bench/tuning/space.py",
    "bench/tuning/judging.py",
    "bench/tuning/policy.py",
    "bench/tuning/objective.py",
    "bench/tuning/knobs.py",
    "bench/tuning/idle.py",
    "bench/tuning/reasons.py",
    "gateway/headers.py",
)
IMPURE_PREFIX = "facts/probe"
IO_MODULES = {
    "subprocess", "socket", "ssl", "asyncio", "threading", "multiprocessing", "signal", "select", "httpx", "httpx2",
    "aiohttp", "requests", "urllib.request", "http.client", "shutil", "tempfile", "psutil", "platformdirs", "pynvml",
    "huggingface_hub", "logging",
}  # fmt: skip
IO_CALLS = {"open", "input", "print"}
IO_ATTRIBUTES = {
    ("os", "environ"), ("os", "getenv"), ("time", "time"), ("datetime", "now"), ("os", "open"), ("os", "listdir"),
}  # fmt: skip
IO_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes"}


def sources() -> list[Path]:
    return sorted(p for p in SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py")


def imported_rooms(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names = [f"trimtab.{a.name}" for a in node.names] if module == "trimtab" else [module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "trimtab" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_only_lower_rooms(path: Path) -> None:
    room = room_of(path)
    if room in DOORS:
        return
    allowed = MAY_IMPORT[room] | EVERYONE | {room} | MORE.get(str(path.relative_to(SRC)), set())
    wrong = set(imported_rooms(ast.parse(path.read_text()), path)) - allowed
    assert not wrong, f"{path.relative_to(SRC)} imports {sorted(wrong)}"


def pure_sources() -> list[Path]:
    found = [p for p in sources() if room_of(p) in PURE and not str(p.relative_to(SRC)).startswith(IMPURE_PREFIX)]
    return found + [SRC / f for f in PURE_FILES if (SRC / f).exists()]


@pytest.mark.parametrize("path", pure_sources(), ids=lambda p: str(p.relative_to(SRC)))
def test_pure_rooms_do_no_io(path: Path) -> None:
    wrong: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wrong += [a.name for a in node.names if a.name in IO_MODULES or a.name.split(".")[0] in IO_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in IO_MODULES or node.module.split(".")[0] in IO_MODULES:
                wrong.append(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IO_CALLS:
            wrong.append(f"{node.func.id}() at line {node.lineno}")
        elif isinstance(node, ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            if (base, node.attr) in IO_ATTRIBUTES or node.attr in IO_METHODS:
                wrong.append(f"{base}.{node.attr} at line {node.lineno}")
    assert not wrong, f"{path.relative_to(SRC)}: {wrong}"


def test_every_room_is_drawn() -> None:
    rooms = {room_of(p) for p in sources()} - DOORS
    assert rooms <= set(MAY_IMPORT)


def test_every_room_states_its_rule() -> None:
    for init in SRC.glob("*/__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), f"{init} has no docstring"
