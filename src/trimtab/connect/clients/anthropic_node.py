"""The Anthropic client for JavaScript and TypeScript. Read in npm @anthropic-ai/sdk 1.14.0."""

from __future__ import annotations

import json

from trimtab.connect import environment
from trimtab.connect.client import Client
from trimtab.connect.clients import anthropic_python
from trimtab.connect.values import Connection, Protocol


def snippet(connection: Connection) -> str:
    """A program of one request."""
    key = environment.node_key(connection)
    return (
        'import Anthropic from "@anthropic-ai/sdk";\n\n'
        f"const client = new Anthropic({{ baseURL: {json.dumps(connection.root)}, authToken: {key} }});\n"
        "const answer = await client.messages.create({\n"
        f"  model: {json.dumps(connection.model)},\n  max_tokens: 256,\n"
        '  messages: [{ role: "user", content: "Name three colours." }],\n'
        '});\nconsole.log(answer.content.map((block) => (block.type === "text" ? block.text : "")).join(""));\n'
    )


CLIENT = Client(
    name="anthropic-node",
    title="Anthropic SDK for TypeScript",
    protocol=Protocol.MESSAGES,
    package="npm @anthropic-ai/sdk",
    version="1.14.0",
    with_v1=False,
    read=anthropic_python.read,
    snippet=snippet,
    notes=anthropic_python.CLIENT.notes,
)
