"""Zed: an OpenAI-compatible provider in settings.json. Read in its source and documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, text_at, tokens_at
from trimtab.connect.documents import Document, Form, Item, Steps
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.errors import UsageError
from trimtab.messages import msg

COMPATIBLE = ("language_models", "openai_compatible")
CHOSEN = ("agent", "default_model")
KEY_NAME = re.compile(r"[A-Z]+(?:_[A-Z]+)*_API_KEY")
OWN = "trimtab"
UNKNOWN_CONTEXT_TOKENS = 8192
"""Zed asks for a number; this small one is written where the server tells none."""


def provider(key_env: str) -> str:
    """The provider's name: Zed reads its key from that name in upper case with _API_KEY behind it.

    UsageError where no provider can be named so that Zed reads `key_env`.
    """
    if KEY_NAME.fullmatch(key_env) is None:
        raise UsageError(
            msg("Zed reads the key from a variable called PROVIDER_API_KEY; {name} is none", name=key_env),
            hint=msg("Export the key as TRIMTAB_API_KEY and leave --key-env out."),
        )
    return key_env.removesuffix("_API_KEY").lower().replace("_", "-")


def variable(name: str) -> str:
    """The variable that Zed reads the key of provider `name` from."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).upper() + "_API_KEY"


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The provider with the model, and both chosen for the agent panel."""
    name, file = provider(connection.key_env), _file(around)
    length = _length(name, connection.model)
    known = tokens_at(Files(around).document(file, Form.JSON), length)
    changes = (
        Change((*COMPATIBLE, name, "api_url"), connection.with_v1),
        Change(length, connection.context_tokens or known or UNKNOWN_CONTEXT_TOKENS),
        Change((*CHOSEN, "provider"), name),
        Change((*CHOSEN, "model"), connection.model),
    )
    return (FileEdit(file, Form.JSON, changes),)


def read(files: Files) -> Present | None:
    """The provider that the agent panel uses, else ours."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    if document is None:
        return None
    chosen = text_at(document, (*CHOSEN, "provider"))
    is_ours = chosen is not None and text_at(document, (*COMPATIBLE, chosen, "api_url")) is not None
    name = chosen if chosen is not None and is_ours else OWN
    url = text_at(document, (*COMPATIBLE, name, "api_url"))
    if url is None:
        return None
    listed = _listed(document, name)
    model = text_at(document, (*CHOSEN, "model")) if is_ours else next(iter(listed), None)
    return Present(
        place=str(file),
        base_url=url,
        model=model,
        key_is=KeyIs.VARIABLE,
        key_variable=variable(name),
        active=is_ours,
        context_tokens=tokens_at(document, _length(name, model or "")),
    )


def _length(name: str, model: str) -> Steps:
    return (*COMPATIBLE, name, "available_models", Item("name", model), "max_tokens")


def _listed(document: Document, name: str) -> list[str]:
    models = document.get((*COMPATIBLE, name, "available_models"))
    entries = models if isinstance(models, list) else []
    return [e["name"] for e in entries if isinstance(e, dict) and isinstance(e.get("name"), str)]


def snippet(connection: Connection) -> str:
    """What to add to settings.json by hand."""
    name = provider(connection.key_env)
    context = connection.context_tokens or UNKNOWN_CONTEXT_TOKENS
    shown = {
        "language_models": {
            "openai_compatible": {
                name: {
                    "api_url": connection.with_v1,
                    "available_models": [{"name": connection.model, "max_tokens": context}],
                }
            }
        },
        "agent": {"default_model": {"provider": name, "model": connection.model}},
    }
    head = f"// The key comes from {connection.key_env}.\n"
    return head + json.dumps(shown, indent=2, ensure_ascii=False)


def _file(around: Surroundings) -> Path:
    return around.config("zed") / "settings.json"


CLIENT = Client(
    name="zed",
    title="Zed",
    protocol=Protocol.CHAT,
    package="github zed-industries/zed",
    version="014676e4",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(
        msg("Zed reads the key in the environment of its own process: start it from a shell that exports the key."),
        msg("It sends nothing without a key: where the server wants none, export any text."),
    ),
    needs_tools=True,
)
