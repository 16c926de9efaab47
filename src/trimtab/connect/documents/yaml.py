"""YAML, changed in place with ruamel.yaml."""

from __future__ import annotations

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from trimtab.connect.documents import ABSENT, InTheWay, Step, Steps, Unreadable, walking

STYLES = ((2, 4, 2), (2, 2, 0), (4, 4, 2), (4, 6, 4), (4, 4, 0))
"""Indentations of mappings and lists, and of the dash: the one that gives a file back as it was is its own."""
WIDEST = 1 << 20


class Document:
    """A YAML file of one document."""

    def __init__(self, text: str) -> None:
        self._style = STYLES[0]
        try:
            self._root = _yaml(self._style).load(text)
        except YAMLError as error:
            raise Unreadable(" ".join(str(error).split())) from error
        self._head = ""
        if self._root is None:
            self._root, self._head = CommentedMap(), text if not text or text.endswith("\n") else text + "\n"
        else:
            self._style = next((s for s in STYLES if _dumped(self._root, s) == text), STYLES[0])

    def get(self, path: Steps) -> object:
        found = walking.get(self._root, path)
        return found if found is ABSENT else _plain(found)

    def set(self, path: Steps, value: object) -> None:
        if not isinstance(self._root, CommentedMap):
            raise InTheWay("the file")
        walking.put(self._root, path, value, _made)

    def remove(self, path: Steps) -> None:
        walking.remove(self._root, path)

    def text(self) -> str:
        return self._head + (_dumped(self._root, self._style) if len(self._root) or not self._head else "")


def _made(is_list: bool, step: Step, following: Step | None) -> Any:
    return CommentedSeq() if is_list else CommentedMap()


def _yaml(style: tuple[int, int, int]) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = WIDEST
    yaml.indent(mapping=style[0], sequence=style[1], offset=style[2])
    return yaml


def _dumped(root: Any, style: tuple[int, int, int]) -> str:
    out = StringIO()
    _yaml(style).dump(root, out)
    return out.getvalue()


def _plain(value: Any) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
