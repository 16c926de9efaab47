"""TOML, changed in place with tomlkit."""

from __future__ import annotations

from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from trimtab.connect.documents import ABSENT, Step, Steps, Unreadable, walking


class Document:
    """A TOML file."""

    def __init__(self, text: str) -> None:
        try:
            self._root = tomlkit.parse(text)
        except TOMLKitError as error:
            raise Unreadable(str(error)) from error

    def get(self, path: Steps) -> object:
        found = walking.get(self._root, path)
        return found if found is ABSENT else _plain(found)

    def set(self, path: Steps, value: object) -> None:
        walking.put(self._root, path, value, _made)

    def remove(self, path: Steps) -> None:
        walking.remove(self._root, path)

    def text(self) -> str:
        return tomlkit.dumps(self._root)


def _made(is_list: bool, step: Step, following: Step | None) -> Any:
    if is_list:
        return tomlkit.aot()
    return tomlkit.table()


def _plain(value: Any) -> object:
    return value.unwrap() if hasattr(value, "unwrap") else value
