"""Words as a POSIX shell needs them, and lines that no name can break out of."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from trimtab.engine.command import FlagUse


def comment(text: str) -> str:
    """One comment line: line ends and other control characters of a name cannot end it."""
    return "# " + re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text)


def quote(text: str) -> str:
    """The text as one word; in double quotes where it holds what looks like an expansion, so that nobody wonders."""
    if re.search(r"[$`']", text):
        return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'
    return shlex.quote(text)


def flag_words(flag: FlagUse, variable: str | None = None) -> str:
    """A flag with its values, quoted; with a `variable`, that stands for the value."""
    spelt = f"--{'no-' if flag.negated else ''}{flag.dotted}"
    dash = bool(flag.values) and flag.values[0].startswith("-")
    if variable is not None:
        return f'{spelt}{"=" if dash else " "}"${variable}"'
    if dash:
        return quote(f"{spelt}={flag.value}")
    return " ".join([spelt, *map(quote, flag.values)])


def command_lines(first: str, rest: Iterable[str]) -> str:
    """A command over several lines."""
    return " \\\n  ".join([first, *rest])


def exports(env: Mapping[str, str]) -> list[str]:
    """The variables of a launch, exported."""
    return [f"export {name}={quote(value)}" for name, value in env.items()]


def script(about: str, *parts: Sequence[str]) -> str:
    """A script that stops at the first error; parts are separated by an empty line."""
    head = ["#!/bin/sh", comment(about), "set -eu"]
    return "\n\n".join("\n".join(part) for part in (head, *parts) if part) + "\n"
