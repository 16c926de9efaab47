"""openai-node, the OpenAI client for JavaScript and TypeScript. Read in npm openai 7.59.0."""

from __future__ import annotations

import json

from trimtab.connect import environment
from trimtab.connect.client import Client, Files, Present
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg

URLS = ("OPENAI_BASE_URL",)
KEYS = ("OPENAI_API_KEY",)


def read(files: Files) -> Present | None:
    """What the environment says."""
    return environment.present(files, URLS, KEYS)


def snippet(connection: Connection) -> str:
    """A program of one request."""
    key = environment.node_key(connection)
    return (
        'import OpenAI from "openai";\n\n'
        f"const client = new OpenAI({{ baseURL: {json.dumps(connection.with_v1)}, apiKey: {key} }});\n"
        "const answer = await client.chat.completions.create({\n"
        f"  model: {json.dumps(connection.model)},\n"
        '  messages: [{ role: "user", content: "Name three colours." }],\n'
        "});\nconsole.log(answer.choices[0].message.content);\n"
    )


CLIENT = Client(
    name="openai-node",
    title="openai-node",
    protocol=Protocol.CHAT,
    package="npm openai",
    version="7.59.0",
    with_v1=True,
    read=read,
    snippet=snippet,
    notes=(msg("Without arguments it takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment."),),
)
