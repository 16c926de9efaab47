"""curl: one request of each protocol's plainest kind."""

from __future__ import annotations

import json

from trimtab.connect.client import Client
from trimtab.connect.values import Connection, Protocol


def snippet(connection: Connection) -> str:
    """A chat completion; the shell puts the key in."""
    body = {
        "model": connection.model,
        "max_tokens": 32,
        "messages": [{"role": "user", "content": "Name three colours."}],
    }
    key = f' \\\n  -H "Authorization: Bearer ${connection.key_env}"' if connection.needs_key else ""
    quoted = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
    return (
        f"curl -sS {connection.with_v1}/chat/completions{key} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"
    )


CLIENT = Client(
    name="curl", title="curl", protocol=Protocol.CHAT, package="curl", version="8", with_v1=True, snippet=snippet
)
