"""Clients that are set by variables of the environment: what those say now."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trimtab.connect.client import Files, KeyIs, Present, Trouble
from trimtab.connect.values import Connection
from trimtab.messages import msg
from trimtab.rules.rule import Severity

PLACE = "environment"


def present(files: Files, urls: Sequence[str], keys: Sequence[str], troubles: Sequence[Trouble] = ()) -> Present | None:
    """What the first variable of each kind that is set says; None where no base URL is.

    The model id stands in the program's own code.
    """
    environ = files.around.environ
    url = first(files, urls)
    if not url and not troubles:
        return None
    return Present(
        place=url or PLACE,
        base_url=environ[url] if url else None,
        model_in_code=True,
        key_is=KeyIs.VARIABLE,
        key_variable=first(files, keys) or keys[0],
        troubles=tuple(troubles),
    )


def first(files: Files, names: Sequence[str]) -> str:
    """The first of the variables that is set and not empty; "" where none is."""
    return next((name for name in names if files.around.environ.get(name)), "")


def shadowed(files: Files, names: Sequence[str]) -> list[Trouble]:
    """Variables that say something else than the one that goes before them."""
    environ = files.around.environ
    used = first(files, names)
    return [
        Trouble(
            "CON007",
            Severity.WARNING,
            msg("{name} is not used: {used} is set too and goes before it", name=name, used=used),
            name,
            mends=False,
        )
        for name in names
        if environ.get(name) and environ[name] != environ[used]
    ]


def python_key(connection: Connection) -> tuple[str, str]:
    """The import and the expression by which a Python program comes by the key."""
    if not connection.needs_key:
        return "", json.dumps(connection.written_key)
    return "import os\n\n", f"os.environ[{json.dumps(connection.key_env)}]"


def node_key(connection: Connection) -> str:
    """The expression by which a JavaScript program comes by the key."""
    return f"process.env.{connection.key_env}" if connection.needs_key else json.dumps(connection.written_key)
