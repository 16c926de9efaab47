"""Aider: model and base URL in .aider.conf.yml, the context length in .aider.model.metadata.json.

Read in aider-chat 0.86.2 and litellm 1.81.10, which it pins.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, Trouble, text_at, tokens_at
from trimtab.connect.documents import Document, Form
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg
from trimtab.rules.rule import Severity

CONFIG = ".aider.conf.yml"
METADATA = ".aider.model.metadata.json"
PREFIX = "openai/"
"""LiteLLM's provider for any OpenAI server; it is taken off before the model id is sent."""
URL, KEY, MODEL = "openai-api-base", "openai-api-key", "model"
FURTHER = ("weak-model", "editor-model")
KEY_VARIABLE = "OPENAI_API_KEY"
OVERRULING = ("OPENAI_BASE_URL", "AIDER_OPENAI_API_BASE", "AIDER_MODEL")
"""LiteLLM asks the first before the base URL that Aider hands on; the AIDER_ ones go before the file."""


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The file that decides today, else the one in the home; a model for small tasks only where one is set already."""
    files = Files(around)
    file = next((f for f, document in _configs(files) if _names(document)), around.home / CONFIG)
    document = files.document(file, Form.YAML)
    changes = [
        Change((URL,), connection.with_v1),
        Change((MODEL,), PREFIX + connection.model),
        *(Change((n,), PREFIX + connection.small) for n in FURTHER if text_at(document, (n,)) is not None),
    ]
    if connection.written_key:
        changes.append(Change((KEY,), connection.written_key, secret=connection.write_key))
    return FileEdit(file, Form.YAML, tuple(changes)), *_metadata(connection, file.parent / METADATA)


def _metadata(connection: Connection, file: Path) -> tuple[FileEdit, ...]:
    if connection.context_tokens is None:
        return ()
    entry = PREFIX + connection.model
    values: dict[str, object] = {
        "max_input_tokens": connection.context_tokens, "litellm_provider": "openai", "mode": "chat",
    }  # fmt: skip
    return (FileEdit(file, Form.JSON, tuple(Change((entry, name), value) for name, value in values.items())),)


def read(files: Files) -> Present | None:
    """Each setting from the nearest file that has it: the present directory, the repository's root, the home."""
    configs, environ = _configs(files), _environ(files)
    place = next((str(file) for file, document in configs if _names(document)), "")
    said = {name: _nearest(configs, name) for name in (URL, KEY, MODEL, *FURTHER)}
    url = said[URL] or environ.get("OPENAI_API_BASE")
    if not place and not url:
        return None
    own = environ.get(KEY_VARIABLE, "")
    key = said[KEY] or (own if own != files.around.environ.get(KEY_VARIABLE, "") else "")
    further = [said[name] for name in FURTHER]
    return Present(
        place=place,
        base_url=url,
        model=_id(said[MODEL]),
        models=tuple(_id(one) or "" for one in further if one),
        key_is=KeyIs.WRITTEN if key else KeyIs.VARIABLE,
        key_variable="" if key else KEY_VARIABLE,
        key=key,
        context_tokens=_context(files, said[MODEL] or ""),
        troubles=(*_prefixes(said, place), *_overruled(environ, url)),
    )


def _configs(files: Files) -> list[tuple[Path, Document]]:
    """The configuration files that are there, the one that wins first."""
    found = []
    for directory in _directories(files.around):
        document = files.document(directory / CONFIG, Form.YAML)
        if document is not None:
            found.append((directory / CONFIG, document))
    return found


def _directories(around: Surroundings) -> list[Path]:
    root = next((d for d in (around.cwd, *around.cwd.parents) if (d / ".git").exists()), around.cwd)
    return list(dict.fromkeys((around.cwd, root, around.home)))


def _names(document: Document) -> bool:
    return any(text_at(document, (name,)) is not None for name in (URL, MODEL))


def _nearest(configs: list[tuple[Path, Document]], name: str) -> str | None:
    return next((t for _, document in configs if (t := text_at(document, (name,))) is not None), None)


def _id(model: str | None) -> str | None:
    return None if model is None else model.removeprefix(PREFIX)


def _context(files: Files, model: str) -> int | None:
    for directory in _directories(files.around):
        document = files.document(directory / METADATA, Form.JSON)
        tokens = tokens_at(document, (model, "max_input_tokens"))
        if tokens is not None:
            return tokens
    return None


def _prefixes(said: dict[str, str | None], place: str) -> list[Trouble]:
    """A model without the prefix goes to whatever provider LiteLLM thinks it is of, or nowhere."""
    models = [(name, said[name]) for name in (MODEL, *FURTHER)]
    return [
        Trouble(
            "CLT015",
            Severity.ERROR,
            msg(
                "{name}: {model} lacks {prefix} before the model id, by which Aider knows whom to ask",
                name=name, model=model, prefix=PREFIX,
            ),
            place,
        )
        for name, model in models
        if model and not model.startswith(PREFIX)
    ]  # fmt: skip


def _environ(files: Files) -> dict[str, str]:
    """The environment with what .env files put into it; of these the nearest wins, and they go before the shell's."""
    environ = dict(files.around.environ)
    for directory in reversed(_directories(files.around)):
        lines = files.document(directory / ".env", Form.LINES)
        said = {name: text_at(lines, (name,)) for name in (KEY_VARIABLE, "OPENAI_API_BASE", *OVERRULING)}
        environ.update({name: value for name, value in said.items() if value is not None})
    return environ


def _overruled(environ: Mapping[str, str], url: str | None) -> list[Trouble]:
    return [
        Trouble(
            "CON007",
            Severity.ERROR,
            msg("{name} is set to {value}; Aider takes that before its file", name=name, value=environ[name]),
            "",
            mends=False,
        )
        for name in OVERRULING
        if environ.get(name) and environ[name] != url
    ]


def snippet(connection: Connection) -> str:
    """One run without any file."""
    key = f'"${connection.key_env}"' if connection.needs_key else shlex.quote(connection.written_key)
    return (
        f"export OPENAI_API_BASE={shlex.quote(connection.with_v1)}\nexport {KEY_VARIABLE}={key}\n"
        f"aider --model {shlex.quote(PREFIX + connection.model)}"
    )


CLIENT = Client(
    name="aider",
    title="Aider",
    protocol=Protocol.CHAT,
    package="PyPI aider-chat",
    version="0.86.2",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(msg("Aider reads the key from OPENAI_API_KEY alone: export the key under that name too."),),
)
