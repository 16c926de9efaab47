"""LlamaIndex's OpenAILike. Read in PyPI llama-index-llms-openai-like 0.8.1 and llama-index-llms-openai 0.8.3."""

from __future__ import annotations

import json

from trimtab.connect import environment
from trimtab.connect.client import Client, Files, Present, Trouble
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg
from trimtab.rules.rule import Severity

URLS = ("OPENAI_API_BASE",)
KEYS = ("OPENAI_API_KEY",)
NOT_READ = "OPENAI_BASE_URL"
UNSTATED_CONTEXT_TOKENS = 3900


def read(files: Files) -> Present | None:
    """What the environment says."""
    troubles = []
    if files.around.environ.get(NOT_READ) and not environment.first(files, URLS):
        said = msg("LlamaIndex does not read {name}; set {url} instead", name=NOT_READ, url=URLS[0])
        troubles.append(Trouble("CON001", Severity.ERROR, said, NOT_READ, mends=False))
    return environment.present(files, URLS, KEYS, troubles)


def snippet(connection: Connection) -> str:
    """A program of one request."""
    imports, key = environment.python_key(connection)
    context = f"    context_window={connection.context_tokens},\n" if connection.context_tokens else ""
    return (
        f"{imports}from llama_index.llms.openai_like import OpenAILike\n\n"
        f"llm = OpenAILike(\n    api_base={json.dumps(connection.with_v1)},\n    api_key={key},\n"
        f"    model={json.dumps(connection.model)},\n    is_chat_model=True,\n{context})\n"
        'print(llm.complete("Name three colours."))\n'
    )


CLIENT = Client(
    name="llamaindex",
    title="LlamaIndex",
    protocol=Protocol.CHAT,
    package="PyPI llama-index-llms-openai-like",
    version="0.8.1",
    with_v1=True,
    read=read,
    snippet=snippet,
    notes=(
        msg(
            "Without context_window it takes {tokens} tokens; without is_chat_model it asks /v1/completions.",
            tokens=UNSTATED_CONTEXT_TOKENS,
        ),
    ),
)
