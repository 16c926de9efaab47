"""Lines of NAME=value, with or without `export`: .env files and shell profiles. A path is the name alone."""

from __future__ import annotations

import re
import shlex

from trimtab.connect.documents import ABSENT, Steps

_LINE = re.compile(r"^(?P<head>\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)=)(?P<value>.*?)(?P<end>\r?\n?)$", re.DOTALL)


class Document:
    """A file of lines; of a name set twice the last one counts."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)

    def get(self, path: Steps) -> object:
        found = self._last(path)
        return ABSENT if found is None else _unquoted(found[1]["value"])

    def set(self, path: Steps, value: object) -> None:
        found = self._last(path)
        if found is not None:
            at, line = found
            self._lines[at] = f"{line['head']}{shlex.quote(str(value))}{line['end']}"
            return
        if self._lines and not self._lines[-1].endswith("\n"):
            self._lines[-1] += "\n"
        self._lines.append(f"{path[0]}={shlex.quote(str(value))}\n")

    def remove(self, path: Steps) -> None:
        found = self._last(path)
        if found is not None:
            del self._lines[found[0]]

    def text(self) -> str:
        return "".join(self._lines)

    def _last(self, path: Steps) -> tuple[int, re.Match[str]] | None:
        matched = ((at, _LINE.match(line)) for at, line in enumerate(self._lines))
        named = [(at, line) for at, line in matched if line is not None and line["name"] == path[0]]
        return named[-1] if named else None


def _unquoted(text: str) -> str:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # a quote that is not closed
        return text.strip()
    return words[0] if words else ""
