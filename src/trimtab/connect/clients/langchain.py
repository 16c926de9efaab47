"""LangChain's ChatOpenAI. Read in PyPI langchain-openai 1.7.4."""

from __future__ import annotations

import json

from trimtab.connect import environment
from trimtab.connect.client import Client, Files, Present, Trouble
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg
from trimtab.rules.rule import Severity

URLS = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
KEYS = ("OPENAI_API_KEY",)
PROXY = "OPENAI_PROXY"


def read(files: Files) -> Present | None:
    """What the environment says."""
    troubles = environment.shadowed(files, URLS)
    if files.around.environ.get(PROXY):
        said = msg("{name} is set: LangChain sends its requests to that proxy", name=PROXY)
        troubles.append(Trouble("CLT030", Severity.WARNING, said, PROXY, mends=False))
    return environment.present(files, URLS, KEYS, troubles)


def snippet(connection: Connection) -> str:
    """A program of one request."""
    imports, key = environment.python_key(connection)
    return (
        f"{imports}from langchain_openai import ChatOpenAI\n\n"
        f"model = ChatOpenAI(\n    base_url={json.dumps(connection.with_v1)},\n    api_key={key},\n"
        f"    model={json.dumps(connection.model)},\n    stream_usage=True,\n)\n"
        'print(model.invoke("Name three colours.").content)\n'
    )


CLIENT = Client(
    name="langchain",
    title="LangChain",
    protocol=Protocol.CHAT,
    package="PyPI langchain-openai",
    version="1.7.4",
    with_v1=True,
    read=read,
    snippet=snippet,
    notes=(
        msg("Without arguments it takes OPENAI_API_BASE, then OPENAI_BASE_URL, and OPENAI_API_KEY."),
        msg("With another base URL it asks for no usage in a stream, unless stream_usage=True."),
    ),
)
