"""opencode: a provider of its own in opencode.json. Read in opencode-ai 1.18.33 and by running it."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Form
from trimtab.connect.values import Connection, Protocol, Surroundings, without_key

PROVIDER = "trimtab"
NAMES = ("opencode.jsonc", "opencode.json", "config.json")
MOST_ANSWER = 8_192
SCHEMA = "https://opencode.ai/config.json"


def _file(around: Surroundings) -> Path:
    """The one that is named, else the user's that is there, else a new one."""
    named = around.environ.get("OPENCODE_CONFIG", "").strip()
    if named:
        return Path(named)
    home = around.config("opencode")
    return next((home / name for name in NAMES if (home / name).exists()), home / "opencode.json")


def _settings(connection: Connection) -> dict[tuple[str, ...], object]:
    block = ("provider", PROVIDER)
    model = (*block, "models", connection.model)
    told: dict[tuple[str, ...], object] = {
        ("$schema",): SCHEMA,
        ("model",): f"{PROVIDER}/{connection.model}",
        ("small_model",): f"{PROVIDER}/{connection.small}",
        (*block, "npm"): "@ai-sdk/openai-compatible",
        (*block, "name"): "Trimtab",
        (*block, "options", "baseURL"): connection.with_v1,
        (*block, "options", "apiKey"): connection.written_key or f"{{env:{connection.key_env}}}",
        (*model, "name"): connection.model,
    }
    if connection.context_tokens:
        told[(*model, "limit", "context")] = connection.context_tokens
        told[(*model, "limit", "output")] = min(MOST_ANSWER, connection.context_tokens // 4)
    if connection.small != connection.model:
        told[(*block, "models", connection.small, "name")] = connection.small
    return told


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The provider with its model and limits, and it chosen."""
    secret = ("provider", PROVIDER, "options", "apiKey")
    changes = [Change(p, v, secret=connection.write_key and p == secret) for p, v in _settings(connection).items()]
    if not connection.context_tokens:
        changes.append(Change(("provider", PROVIDER, "models", connection.model, "limit"), ABSENT))
    return (FileEdit(_file(around), Form.JSON, tuple(changes)),)


def read(files: Files) -> Present | None:
    """The provider of the model that is chosen; ours where none is."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    if document is None:
        return None
    provider, _, model = (text_at(document, ("model",)) or "").partition("/")
    chosen = provider or PROVIDER
    small, _, small_model = (text_at(document, ("small_model",)) or "").partition("/")
    options = ("provider", chosen, "options")
    key = text_at(document, (*options, "apiKey")) or ""
    variable = key.removeprefix("{env:").removesuffix("}") if key.startswith("{env:") else ""
    return Present(
        place=str(file),
        base_url=text_at(document, (*options, "baseURL")),
        model=model or None,
        models=(small_model,) if small == chosen else (),
        key_is=KeyIs.VARIABLE if variable else KeyIs.WRITTEN if key else KeyIs.NONE,
        key_variable=variable,
        key="" if variable else key,
        active=chosen == PROVIDER or document.get(("provider", PROVIDER)) is ABSENT,
        context_tokens=tokens_at(document, ("provider", chosen, "models", model, "limit", "context")),
    )


def snippet(connection: Connection) -> str:
    """One run without any file: the configuration in a variable."""
    config: dict[str, object] = {}
    for path, value in _settings(without_key(connection)).items():
        holder = config
        for step in path[:-1]:
            holder = holder.setdefault(step, {})  # type: ignore[assignment]
        holder[path[-1]] = value
    return f"OPENCODE_CONFIG_CONTENT='{json.dumps(config, indent=2)}' \\\n  opencode run 'Name three colours.'"


CLIENT = Client(
    name="opencode",
    title="opencode",
    protocol=Protocol.CHAT,
    package="npm opencode-ai",
    version="1.18.33",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    prompt_tokens=7_700,
    answer_tokens=4_000,
    needs_tools=True,
)
