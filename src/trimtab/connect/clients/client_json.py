"""A program's own client.json: base_url, api_key, model, timeout, max_retries, as openai-python's client takes them."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, text_at
from trimtab.connect.documents import ABSENT, Form
from trimtab.connect.values import KEY_VARIABLE, Connection, Protocol, Surroundings
from trimtab.messages import msg

DEFAULTS = {"timeout": 120, "max_retries": 2}
"""Put in where the file has none of its own; a timeout of 120 s ends an answer that takes longer."""

PROGRAM = """import json
import os
from pathlib import Path

from openai import OpenAI

settings = {
KEY    **json.loads(Path(os.environ.get("CLIENT_JSON", "client.json")).read_text()),
}
model = settings.pop("model")
client = OpenAI(**settings)
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "Name three colours."}],
)
print(answer.choices[0].message.content)
"""
VARIABLES = (KEY_VARIABLE, "OPENAI_API_KEY")
"""Where a program looks for a key that the file does not hold: ours as the snippet does, the other by itself."""


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The three things; the key only where it may be written, since the file stands beside code."""
    file = _file(around)
    document = Files(around).document(file, Form.JSON)
    changes = [
        Change(("base_url",), connection.with_v1),
        Change(("api_key",), connection.written_key or ABSENT, secret=True),
        Change(("model",), connection.model),
    ]
    changes += [Change((k,), v) for k, v in DEFAULTS.items() if document is None or document.get((k,)) is ABSENT]
    return (FileEdit(file, Form.JSON, tuple(changes)),)


def read(files: Files) -> Present | None:
    """What the file in the present directory says."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    if document is None:
        return None
    key = text_at(document, ("api_key",))
    variable = next((name for name in VARIABLES if files.around.environ.get(name)), VARIABLES[0])
    return Present(
        place=str(file),
        base_url=text_at(document, ("base_url",)),
        model=text_at(document, ("model",)),
        key_is=KeyIs.WRITTEN if key else KeyIs.VARIABLE,
        key_variable="" if key else variable,
        key=key or "",
    )


def snippet(connection: Connection) -> str:
    """A program that reads the file, with the key from the environment where the file holds none."""
    key = f'    "api_key": os.environ[{json.dumps(connection.key_env)}],\n' if connection.needs_key else ""
    said = json.dumps({"base_url": connection.with_v1, "model": connection.model, **DEFAULTS}, ensure_ascii=False)
    return f"# client.json: {said}\n" + PROGRAM.replace("KEY", key)


def _file(around: Surroundings) -> Path:
    named = around.environ.get("CLIENT_JSON", "").strip()
    return around.cwd / Path(named or "client.json").expanduser()


CLIENT = Client(
    name="client.json",
    title="client.json",
    protocol=Protocol.CHAT,
    package="PyPI openai",
    version="3.57.0",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(msg("The file is client.json in the present directory, or the one that CLIENT_JSON names."),),
)
