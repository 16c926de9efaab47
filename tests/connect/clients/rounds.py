"""A client's files written and undone in a directory of the test's own, and judged beside a server that is told."""

from __future__ import annotations

from pathlib import Path

from trimtab.connect.checking import judge, present
from trimtab.connect.client import Client, Trouble
from trimtab.connect.live import Served
from trimtab.connect.undoing import undo
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.connect.writing import diff, planned, write
from trimtab.engine.api import ServedModel

ROOT = "http://127.0.0.1:8000"
MODEL = "Qwen/Qwen3-8B"
CONTEXT = 40_960


def told(**values: object) -> Connection:
    """A server with a key in TRIMTAB_API_KEY, but for `values`."""
    return Connection(**{"root": ROOT, "model": MODEL, "context_tokens": CONTEXT, **values})  # type: ignore[arg-type]


def around(home: Path, **environ: str) -> Surroundings:
    """A user whose home is `home` and who works in home/work."""
    (home / "work").mkdir(exist_ok=True)
    return Surroundings(environ, home, home / "work")


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def written(client: Client, here: Surroundings, connection: Connection | None = None) -> str:
    """Write it; the diff of all files. A second writing changes nothing."""
    assert client.edits is not None
    connection = connection or told()
    plans = planned(client.edits(connection, here))
    shown = "".join(diff(plan) for plan in plans)
    write(plans, here.home / "state")
    assert not [plan.file for plan in planned(client.edits(connection, here)) if plan.changes]
    return shown


def taken_back(here: Surroundings) -> None:
    undo(here.home / "state")


def files_below(home: Path) -> dict[str, bytes]:
    """Every file but the backups."""
    found = (f for f in home.rglob("*") if f.is_file() and "state" not in f.relative_to(home).parts)
    return {str(f.relative_to(home)): f.read_bytes() for f in found}


def served(**values: object) -> Served:
    """A vLLM server with the model of `told`."""
    model = ServedModel(MODEL, CONTEXT)
    return Served(**{"root": ROOT, "models": (model,), "needs_key": True, "spoken": tuple(Protocol), **values})  # type: ignore[arg-type]


def troubles(client: Client, here: Surroundings, server: Served | None = None) -> list[Trouble]:
    return judge(client, present(client, here), server or served(), here.environ)


def codes(client: Client, here: Surroundings, server: Served | None = None) -> list[str]:
    return [one.code for one in troubles(client, here, server)]
