"""Paths into nested tables and lists, for documents whose library gives both as Python containers."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSequence
from typing import Any

from trimtab.connect.documents import ABSENT, InTheWay, Item, Step, Steps, shown

Make = Callable[[bool, Step, Step | None], Any]
"""An empty container: whether a list, the step that it stands at, the step that follows in it."""


def get(root: Any, path: Steps) -> Any:
    """The value at `path` below `root`, ABSENT where there is none."""
    found = root
    for step in path:
        found = _below(found, step)
        if found is ABSENT:
            return ABSENT
    return found


def put(root: Any, path: Steps, value: Any, make: Make) -> None:
    """Set `value` at `path`; containers that are missing are made."""
    holder = root
    for at, step in enumerate(path):
        last = at == len(path) - 1
        following = None if last else path[at + 1]
        _require(holder, step, path[:at])
        if isinstance(step, Item):
            found = _below(holder, step)
            if found is ABSENT:
                found = make(False, step, following)
                found[step.field] = step.value
                if last:
                    found.update(value)
                holder.append(found)
                found = _below(holder, step)  # a library may have copied it
            elif last:
                found.update(value)
        elif last:
            holder[step] = value
            return
        else:
            found = _below(holder, step)
            if found is ABSENT or found is None:
                holder[step] = make(isinstance(following, Item), step, following)
                found = holder[step]
        holder = found


def remove(root: Any, path: Steps) -> None:
    """Take the value away, and the containers that are empty after it."""
    holders = [root]
    for step in path[:-1]:
        below = _below(holders[-1], step)
        if below is ABSENT:
            return
        holders.append(below)
    for holder, step in reversed(list(zip(holders, path, strict=True))):
        found = _below(holder, step)
        if found is ABSENT:
            return
        if holder is not holders[-1] and not _is_empty(found, step):
            return
        if isinstance(step, Item):
            holder.remove(found)
        else:
            del holder[step]


def _is_empty(found: Any, step: Step) -> bool:
    return len(found) == 0 or (isinstance(step, Item) and list(found) == [step.field])


def _below(holder: Any, step: Step) -> Any:
    if isinstance(step, Item):
        entries = holder if isinstance(holder, MutableSequence) else []
        matching = (e for e in entries if isinstance(e, MutableMapping) and e.get(step.field) == step.value)
        return next(matching, ABSENT)
    return holder.get(step, ABSENT) if isinstance(holder, MutableMapping) else ABSENT


def _require(holder: Any, step: Step, way: Steps) -> None:
    wanted = MutableSequence if isinstance(step, Item) else MutableMapping
    if not isinstance(holder, wanted):
        raise InTheWay(shown(way))
