"""The Anthropic client for Python. Read in PyPI anthropic 2.14.0."""

from __future__ import annotations

import json

from trimtab.connect import environment
from trimtab.connect.client import Client, Files, Present
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg

URLS = ("ANTHROPIC_BASE_URL",)
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The first wins. Older clients send it as x-api-key, which vLLM itself does not read; the second always as Bearer."""


def read(files: Files) -> Present | None:
    """What the environment says."""
    return environment.present(files, URLS, KEYS, environment.shadowed(files, KEYS))


def snippet(connection: Connection) -> str:
    """A program of one request."""
    imports, key = environment.python_key(connection)
    return (
        f"{imports}from anthropic import Anthropic\n\n"
        f"client = Anthropic(base_url={json.dumps(connection.root)}, auth_token={key})\n"
        f"answer = client.messages.create(\n    model={json.dumps(connection.model)},\n    max_tokens=256,\n"
        '    messages=[{"role": "user", "content": "Name three colours."}],\n)\n'
        'print("".join(block.text for block in answer.content if block.type == "text"))\n'
    )


CLIENT = Client(
    name="anthropic-python",
    title="Anthropic SDK for Python",
    protocol=Protocol.MESSAGES,
    package="PyPI anthropic",
    version="2.14.0",
    with_v1=False,
    read=read,
    snippet=snippet,
    notes=(
        msg("Without arguments it takes ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN from the environment."),
        msg("Older releases send ANTHROPIC_API_KEY as x-api-key: the gateway reads it, vLLM itself does not."),
    ),
)
