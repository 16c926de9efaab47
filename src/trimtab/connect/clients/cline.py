"""Cline: the provider openai-compatible in providers.json. Read in cline 3.0.65 and by running it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, Trouble, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Form
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg
from trimtab.rules.rule import Severity

PROVIDER = "openai-compatible"
BLOCK = ("providers", PROVIDER, "settings")
CHOSEN = ("lastUsedProvider",)
VARIABLE = "OPENAI_API_KEY"
"""The only variable in which it looks for this provider's key, where its file holds none."""


def _settings(around: Surroundings, variable: str, name: str) -> Path:
    named = around.environ.get(variable, "").strip()
    if named:
        return Path(named)
    data = around.environ.get("CLINE_DATA_DIR", "").strip()
    home = Path(data) if data else around.directory("CLINE_DIR", ".cline") / "data"
    return home / "settings" / name


def _file(around: Surroundings) -> Path:
    return _settings(around, "CLINE_PROVIDER_SETTINGS_PATH", "providers.json")


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The provider, and it chosen; what the file must have besides is written where it is not there."""
    file = _file(around)
    document = Files(around).document(file, Form.JSON)
    entry = BLOCK[:-1]
    frame: dict[tuple[str, ...], object] = {
        ("version",): 1,
        ("modes",): {},
        (*entry, "updatedAt"): datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        (*entry, "tokenSource"): "manual",
    }
    changes = [Change(p, v, theirs=True) for p, v in frame.items() if document is None or document.get(p) is ABSENT]
    changes += [
        Change(CHOSEN, PROVIDER),
        Change((*BLOCK, "provider"), PROVIDER),
        Change((*BLOCK, "model"), connection.model),
        Change((*BLOCK, "baseUrl"), connection.with_v1),
        Change((*BLOCK, "contextWindow"), connection.context_tokens or ABSENT),
        Change((*BLOCK, "apiKey"), connection.written_key or ABSENT, secret=connection.write_key),
    ]
    return (FileEdit(file, Form.JSON, tuple(changes)),)


def read(files: Files) -> Present | None:
    """The provider that was used last, and MCP servers at its port."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    if document is None:
        return None
    chosen = text_at(document, CHOSEN) or PROVIDER
    block = ("providers", chosen, "settings")
    key, url = text_at(document, (*block, "apiKey")) or "", text_at(document, (*block, "baseUrl"))
    login = document.get((*block, "auth", "accessToken")) is not ABSENT
    said = msg("the provider {name} uses the login of its own account, not your server's key", name=chosen)
    return Present(
        place=str(file),
        base_url=url,
        model=text_at(document, (*block, "model")),
        key_is=KeyIs.WRITTEN if key else KeyIs.VARIABLE,
        key_variable="" if key else VARIABLE,
        key=key,
        active=chosen == PROVIDER or document.get(BLOCK) is ABSENT,
        context_tokens=tokens_at(document, (*block, "contextWindow")),
        troubles=(
            *([Trouble("CLT036", Severity.ERROR, said, str(file))] if login else []),
            *_mcp(files, url or text_at(document, (*BLOCK, "baseUrl")) or ""),
        ),
    )


def _mcp(files: Files, url: str) -> Iterator[Trouble]:
    """MCP servers entered where the model is served: a model server speaks no MCP."""
    file = _settings(files.around, "CLINE_MCP_SETTINGS_PATH", "cline_mcp_settings.json")
    document = files.document(file, Form.JSON)
    entered = document.get(("mcpServers",)) if document is not None else None
    for name, entry in (entered if isinstance(entered, dict) else {}).items():
        at = _url_of(entry)
        if at and url and _port(at) == _port(url) is not None:
            said = msg("the MCP server {name} is entered at {url}, where the model is served", name=name, url=at)
            yield Trouble("CON006", Severity.ERROR, said, f"{file}: mcpServers.{name}", mends=False)


def _url_of(entry: Any) -> str:
    """The address of an entry, whichever of its two shapes it has."""
    entry = entry if isinstance(entry, dict) else {}
    transport = entry.get("transport")
    found = entry.get("url") or (transport.get("url") if isinstance(transport, dict) else None)
    return found if isinstance(found, str) else ""


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def snippet(connection: Connection) -> str:
    """The command that writes it, and one run. The key stands in the environment."""
    key = f'export {VARIABLE}="${connection.key_env}"' if connection.needs_key else f"export {VARIABLE}=none"
    return (
        f"{key}\ncline auth --provider openai --apikey \"${VARIABLE}\" --modelid '{connection.model}' "
        f"--baseurl '{connection.with_v1}'\ncline 'Name three colours.'"
    )


CLIENT = Client(
    name="cline",
    title="Cline",
    protocol=Protocol.CHAT,
    package="npm cline",
    version="3.0.65",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(
        msg("Without a key in its file Cline reads OPENAI_API_KEY alone: export it where Cline runs, or --write-key."),
        msg("`cline auth`, as --print has it, writes the key into Cline's file."),
    ),
    prompt_tokens=5_700,
    answer_tokens=4_000,
    needs_tools=True,
)
