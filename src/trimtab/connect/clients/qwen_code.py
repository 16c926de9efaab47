"""Qwen Code: a model of the OpenAI protocol in settings.json. Read in @qwen-code/qwen-code 0.24.4 and by running it."""

from __future__ import annotations

from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Form, Item, Steps
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg

OPENAI = "openai"
PROVIDERS = ("modelProviders", OPENAI)
TYPE: Steps = ("security", "auth", "selectedType")
CHOSEN: Steps = ("model", "name")


def _file(around: Surroundings) -> Path:
    return around.directory("QWEN_HOME", ".qwen") / "settings.json"


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The model with its address, chosen; a key itself goes into `env` of the same file, where the client reads it."""
    model = (*PROVIDERS, Item("id", connection.model))
    variable = connection.key_env
    changes = [
        Change((*model, "name"), connection.model),
        Change((*model, "baseUrl"), connection.with_v1),
        Change((*model, "envKey"), variable),
        Change((*model, "generationConfig", "contextWindowSize"), connection.context_tokens or ABSENT),
        Change(TYPE, OPENAI),
        Change(CHOSEN, connection.model),
    ]
    if connection.written_key:
        changes.append(Change(("env", variable), connection.written_key, secret=connection.write_key))
    return (FileEdit(_file(around), Form.JSON, tuple(changes)),)


def read(files: Files) -> Present | None:
    """The chosen model's entry."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    if document is None:
        return None
    chosen = text_at(document, CHOSEN)
    model = (*PROVIDERS, Item("id", chosen or ""))
    variable = text_at(document, (*model, "envKey")) or ""
    written = text_at(document, ("env", variable)) if variable else None
    return Present(
        place=str(file),
        base_url=text_at(document, (*model, "baseUrl")),
        model=chosen,
        key_is=KeyIs.WRITTEN if written else KeyIs.VARIABLE if variable else KeyIs.NONE,
        key_variable="" if written else variable,
        key=written or "",
        active=text_at(document, TYPE) == OPENAI,
        context_tokens=tokens_at(document, (*model, "generationConfig", "contextWindowSize")),
    )


def snippet(connection: Connection) -> str:
    """One run with the environment alone."""
    key = f'"${connection.key_env}"' if connection.needs_key else "none"
    return (
        f"OPENAI_BASE_URL='{connection.with_v1}' OPENAI_API_KEY={key} OPENAI_MODEL='{connection.model}' \\\n"
        "  qwen --auth-type openai -p 'Name three colours.'"
    )


CLIENT = Client(
    name="qwen-code",
    title="Qwen Code",
    protocol=Protocol.CHAT,
    package="npm @qwen-code/qwen-code",
    version="0.24.4",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(msg("The settings of a project (.qwen/settings.json) count before those of the user."),),
    prompt_tokens=14_300,
    answer_tokens=4_000,
    needs_tools=True,
)
