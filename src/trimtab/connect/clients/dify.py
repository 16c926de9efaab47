"""Dify: the form of its plugin OpenAI-API-compatible. Read in langgenius/dify-official-plugins, plugin 0.0.63."""

from __future__ import annotations

from trimtab.connect.client import Client
from trimtab.connect.containers import from_container
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg

PRESET_TOKENS = 4096
"""What the form holds for both lengths before they are filled in."""


def snippet(connection: Connection) -> str:
    """The form's fields, by the names that Dify's English page shows."""
    key = f"${connection.key_env}" if connection.needs_key else connection.written_key
    context = str(connection.context_tokens) if connection.context_tokens else f"{PRESET_TOKENS} (unknown)"
    fields = {
        "Model Name": connection.model,
        "API Key": key,
        "API Base URL": from_container(connection.with_v1),
        "model name for API endpoint": connection.model,
        "Completion mode": "Chat",
        "Model context size": context,
        "Upper bound for max tokens": context,
    }
    width = max(map(len, fields))
    return "".join(f"{name:<{width}}  {value}\n" for name, value in fields.items())


CLIENT = Client(
    name="dify",
    title="Dify",
    protocol=Protocol.CHAT,
    package="plugin langgenius/openai_api_compatible",
    version="0.0.63",
    with_v1=True,
    snippet=snippet,
    notes=(
        msg("Settings, Model Provider, OpenAI-API-compatible, Add Model; Dify keeps it in its database."),
        msg("Dify runs in containers: localhost there is the container, not this host."),
    ),
)
