"""Reads the environment variables that one vLLM version knows: name, type, default and choices from its envs.py."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .records import Record, plain
from .slices import Sources

NEUTRAL = {"HOME": "~", "PATH": ""}


def variables(made: Sources) -> list[Record]:
    """One record a variable, in name order; a default that depends on the machine is left out."""
    envs = made.module("vllm.envs")
    if envs is None:
        return []
    types, choices = _types(envs.tree), _choices(envs.tree)
    found = []
    for name in sorted(envs.environment_variables):
        entry: Record = {"name": name, "kind": types.get(name, "str"), "default": _default(envs, name)}
        if name in choices:
            entry["choices"] = choices[name]
        found.append({k: v for k, v in entry.items() if v is not None})
    return found


def _default(envs: Any, name: str) -> Any:
    try:
        first, second = _read(envs, name), _read(envs, name)
        return first if first == second else None  # a fresh name at each start is no default
    except Exception:  # noqa: BLE001 - it asks the machine; then there is no default to state
        return None


def _read(envs: Any, name: str) -> Any:
    with _neutral_environment():  # of its own: some readers keep what they gave in the environment
        return plain(envs.environment_variables[name]())


def _types(tree: ast.Module) -> dict[str, str]:
    """Annotations of the `if TYPE_CHECKING:` block, without `| None`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id.isupper():
            text = ast.unparse(node.annotation).replace("Optional[", "").replace(" | None", "").rstrip("]")
            found[node.target.id] = text if text in ("bool", "int", "float", "str") else _inside(text)
    return found


def _inside(text: str) -> str:
    if text.startswith(("list", "List", "set")):
        return "list"
    return next((kind for kind in ("bool", "int", "float") if text.startswith(kind)), "str")


def _choices(tree: ast.Module) -> dict[str, list[str]]:
    """The list that a variable's reader checks its value against, where it is written out."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "choices" in node.func.id:
            words = [ast.literal_eval(a) if isinstance(a, ast.Constant | ast.List) else None for a in node.args]
            if len(words) >= 3 and isinstance(words[0], str) and isinstance(words[2], list):
                found[words[0]] = words[2]
    return found


@contextlib.contextmanager
def _neutral_environment() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(NEUTRAL)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
