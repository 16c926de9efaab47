"""LiteLLM's proxy: an entry of model_list in its config file. Read in litellm 1.110.2."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, tokens_at
from trimtab.connect.documents import ABSENT, Document, Form, Item, Steps
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg

LIST = "model_list"
PREFIXES = ("hosted_vllm/", "openai/")
"""Providers that take a base URL; with hosted_vllm no parameter is taken out that vLLM knows and OpenAI does not."""
LENGTH = ("model_info", "max_input_tokens")
ENVIRONMENT = "os.environ/"
NAMES = ("litellm_config.yaml", "config.yaml", "litellm_config.yml", "config.yml")


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """One entry under the served name; the key by the name of its variable."""
    file = _file(Files(around))
    entry: Steps = (LIST, Item("model_name", connection.model))
    parameters = (*entry, "litellm_params")
    length = [Change((*entry, *LENGTH), connection.context_tokens)] if connection.context_tokens else []
    changes = (
        Change((*parameters, "model"), PREFIXES[0] + connection.model),
        Change((*parameters, "api_base"), connection.with_v1),
        Change(
            (*parameters, "api_key"),
            connection.written_key or ENVIRONMENT + connection.key_env,
            secret=connection.write_key,
        ),
        *length,
    )
    return (FileEdit(file, Form.YAML, changes),)


def read(files: Files) -> Present | None:
    """The first entry that names a base URL, and the models behind the same URL."""
    file = _file(files)
    document = files.document(file, Form.YAML)
    entries = _entries(document) if document is not None else []
    if not entries:
        return None
    first = entries[0]
    url, key = _text(first, "api_base"), _text(first, "api_key")
    served = [_served(_text(e, "model")) for e in entries if _text(e, "api_base") == url]
    named = key.startswith(ENVIRONMENT)
    return Present(
        place=str(file),
        base_url=url,
        model=served[0],
        models=tuple(served[1:]),
        key_is=KeyIs.VARIABLE if named else KeyIs.WRITTEN if key else KeyIs.NONE,
        key_variable=key.removeprefix(ENVIRONMENT) if named else "",
        key="" if named else key,
        context_tokens=tokens_at(document, (LIST, Item("model_name", str(first.get("model_name"))), *LENGTH)),
    )


def _entries(document: Document) -> list[dict[str, object]]:
    """The entries of model_list that name a base URL and a provider that takes one."""
    listed = document.get((LIST,))
    found = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
    return [e for e in found if _text(e, "api_base") and _text(e, "model").startswith(PREFIXES)]


def _text(entry: dict[str, object], name: str) -> str:
    parameters = entry.get("litellm_params")
    value = parameters.get(name) if isinstance(parameters, dict) else None
    return value if isinstance(value, str) else ""


def _served(model: str) -> str:
    """The model id that LiteLLM sends."""
    return model.partition("/")[2]


def snippet(connection: Connection) -> str:
    """The entry for a config file."""
    key = connection.written_key or ENVIRONMENT + connection.key_env
    context = connection.context_tokens
    length = f"    model_info:\n      max_input_tokens: {context}\n" if context else ""
    return (
        f"{LIST}:\n  - model_name: {json.dumps(connection.model)}\n    litellm_params:\n"
        f"      model: {json.dumps(PREFIXES[0] + connection.model)}\n"
        f"      api_base: {json.dumps(connection.with_v1)}\n      api_key: {json.dumps(key)}\n{length}"
    )


def _file(files: Files) -> Path:
    """The file that CONFIG_FILE_PATH names, else the first one here with a model_list, else one to be made."""
    around = files.around
    named = around.environ.get("CONFIG_FILE_PATH", "").strip()
    if named:
        return around.cwd / Path(named).expanduser()
    for name in NAMES:
        document = files.document(around.cwd / name, Form.YAML)
        if document is not None and document.get((LIST,)) is not ABSENT:
            return around.cwd / name
    return around.cwd / NAMES[0]


CLIENT = Client(
    name="litellm",
    title="LiteLLM",
    protocol=Protocol.CHAT,
    package="PyPI litellm",
    version="1.110.2",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(msg("Start it with the file: litellm --config FILE; CONFIG_FILE_PATH names another one."),),
)
