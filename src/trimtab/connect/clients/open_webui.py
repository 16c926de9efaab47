"""Open WebUI: variables of its first start, its admin page after that. Read in PyPI open-webui 0.12.4."""

from __future__ import annotations

import shlex

from trimtab.connect import environment
from trimtab.connect.client import Client, Files, KeyIs, Present, Trouble
from trimtab.connect.containers import from_container
from trimtab.connect.values import Connection, Protocol
from trimtab.messages import msg
from trimtab.rules.rule import Severity

URLS = ("OPENAI_API_BASE_URLS", "OPENAI_API_BASE_URL")
KEYS = ("OPENAI_API_KEYS", "OPENAI_API_KEY")
"""The plural ones win and hold one entry a server, with semicolons between."""
BETWEEN = ";"


def read(files: Files) -> Present | None:
    """The first server that the environment names."""
    url, key = environment.first(files, URLS), environment.first(files, KEYS)
    if not url:
        return None
    environ = files.around.environ
    servers, secrets = environ[url].split(BETWEEN), environ.get(key, "").split(BETWEEN)
    troubles = environment.shadowed(files, URLS) if url == URLS[0] else []
    if len(servers) != len(secrets):
        said = msg("{url} names {servers} servers, {key} holds {keys} keys",
                   url=url, servers=len(servers), key=key or KEYS[1], keys=len(secrets) if key else 0)  # fmt: skip
        troubles.append(Trouble("CLT001", Severity.ERROR, said, url, mends=False))
    return Present(
        place=url,
        base_url=servers[0].strip(),
        model_in_code=True,
        key_is=KeyIs.WRITTEN if key else KeyIs.NONE,
        key=secrets[0],
        troubles=tuple(troubles),
    )


def snippet(connection: Connection) -> str:
    """A start with pip's package, and one with Docker."""
    key = f'"${connection.key_env}"' if connection.needs_key else shlex.quote(connection.written_key)
    url, inside = shlex.quote(connection.with_v1), shlex.quote(from_container(connection.with_v1))
    return (
        f"OPENAI_API_BASE_URL={url} OPENAI_API_KEY={key} ENABLE_OLLAMA_API=False "
        f"DEFAULT_MODELS={shlex.quote(connection.model)} open-webui serve\n\n"
        "docker run -d -p 3000:8080 --add-host=host.docker.internal:host-gateway \\\n"
        f"  -e OPENAI_API_BASE_URL={inside} -e OPENAI_API_KEY={key} \\\n"
        "  -e ENABLE_OLLAMA_API=False -v open-webui:/app/backend/data ghcr.io/open-webui/open-webui:main\n"
    )


CLIENT = Client(
    name="open-webui",
    title="Open WebUI",
    protocol=Protocol.CHAT,
    package="PyPI open-webui",
    version="0.12.4",
    with_v1=True,
    read=read,
    snippet=snippet,
    notes=(
        msg("What was saved on its admin page goes before these variables: Admin Panel, Settings, Connections."),
        msg("ENABLE_PERSISTENT_CONFIG=False makes it take the variables at each start."),
    ),
)
