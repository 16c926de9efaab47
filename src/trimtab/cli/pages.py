"""Write a report's page to the file that --html names."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from trimtab.bench import charts
from trimtab.bench.page import Page, html
from trimtab.engine.redaction import hide_secrets
from trimtab.errors import HostError
from trimtab.messages import msg


def ready(path: Path | None) -> None:
    """Before the work that ends in a page: HostError when matplotlib or the directory is missing."""
    if path is None:
        return
    charts.require()
    require_place(path)


def require_place(path: Path | None) -> None:
    """Before the work that ends in a file: HostError when its directory is missing or may not be written."""
    if path is None:
        return
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise HostError(
            msg("cannot write {path}: {reason}", path=path, reason=msg("no directory that may be written")),
            hint=msg("Name a file in a directory that you may write."),
        )


def write(path: Path, page: Page, lang: str) -> None:
    """The page in `lang`; HostError when it cannot be written."""
    text = html(page, lang)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HostError(
            msg("cannot write {path}: {reason}", path=path, reason=error.strerror or error),
            hint=msg("Name a file in a directory that you may write."),
        ) from error


def command(secrets: Iterable[str] = ()) -> str:
    """The command that runs, as it was typed, without `secrets` and whatever looks like one."""
    return hide_secrets(shlex.join(["trimtab", *sys.argv[1:]]), secrets)
