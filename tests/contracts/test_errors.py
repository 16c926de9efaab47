"""The exception tree is as drawn; each class has an exit code, a status and a hint."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from trimtab import errors


def classes() -> list[type[errors.TrimtabError]]:
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.TrimtabError)]
    return [c for c in found if c.__module__ == errors.__name__]


def test_tree_is_drawn() -> None:
    for cls in classes():
        assert cls.__name__ in (errors.__doc__ or "")
        assert cls.__doc__
        assert cls.exit_code in (1, 2)
        assert 400 <= cls.http_status < 600
        assert str(cls.default_hint)


def test_every_class_is_raised_somewhere() -> None:
    made: set[str] = set()
    for path in Path(errors.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                made.add(node.func.id)
    assert {c.__name__ for c in classes()} - made == {"TrimtabError"}
