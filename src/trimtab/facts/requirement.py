"""Whether a version is among those that a requirement of Python packages admits ("<5.20,>=5.16.1", "==2.13.0")."""

from __future__ import annotations

import re
from itertools import zip_longest

_CLAUSE = re.compile(r"(===|==|!=|<=|>=|~=|<|>)\s*([^\s,;]+)")


def admits(specifier: str, version: str) -> bool:
    """Release numbers alone are compared, as PEP 440 orders them; a local part ("+cpu") counts only where it is named.

    A clause that cannot be read admits everything.
    """
    return all(_holds(operator, wanted, version) for operator, wanted in _CLAUSE.findall(specifier))


def _holds(operator: str, wanted: str, version: str) -> bool:
    if operator == "===" or (operator in ("==", "!=") and "+" in wanted):
        return (wanted == version) is (operator != "!=")
    if wanted.endswith(".*"):
        prefix = _numbers(wanted[:-2])
        return (_numbers(version)[: len(prefix)] == prefix) is (operator != "!=")
    order = _compare(_numbers(version), _numbers(wanted))
    if operator == "~=":
        prefix = _numbers(wanted)[:-1]
        return order >= 0 and _numbers(version)[: len(prefix)] == prefix
    return {"==": order == 0, "!=": order != 0, "<=": order <= 0, ">=": order >= 0, "<": order < 0, ">": order > 0}[
        operator
    ]


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", version.partition("+")[0])
    return tuple(int(n) for n in found.group(1).split(".")) if found else ()


def _compare(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    for a, b in zip_longest(one, other, fillvalue=0):
        if a != b:
            return -1 if a < b else 1
    return 0
