"""The exception tree is as drawn; each class has an exit code, a status and a hint."""

from __future__ import annotations

import inspect

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
