"""VS Code's chat: a group of the Custom Endpoint provider in chatLanguageModels.json. Read in its source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, Trouble
from trimtab.connect.documents import ABSENT, Document, Form, Item, Steps
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg
from trimtab.rules.rule import Severity

NAME = "chatLanguageModels.json"
GROUP = "Trimtab"
VENDOR = "customendpoint"
OLD_VENDOR = "customoai"
"""Its name before VS Code 1.122; deprecated, and only in Insiders."""
UNKNOWN_CONTEXT_TOKENS = 8192
ANSWER_SHARE = 4
"""One part in so many of the context is the longest answer; VS Code sends that as max_tokens with every request."""
LONGEST_ANSWER_TOKENS = 16_384
ENDPOINT = re.compile(r"/(?:chat/completions|responses|messages)/?$")
REFERENCE = re.compile(r"\$\{input:[^}]+\}")


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The group and its model. The key is entered in VS Code, which keeps it outside the file."""
    group: Steps = (Item("name", GROUP),)
    model: Steps = (*group, "models", Item("id", connection.model))
    file = _file(around)
    answer, prompt = lengths(connection.context_tokens or UNKNOWN_CONTEXT_TOKENS)
    changes = [
        Change((*group, "vendor"), VENDOR),
        Change((*group, "apiType"), "chat-completions"),
        Change((*model, "name"), connection.model),
        Change((*model, "url"), connection.with_v1 + "/chat/completions"),
    ]
    document = Files(around).document(file, Form.JSON)
    for name, value in (("toolCalling", True), ("vision", False)):
        if document is None or document.get((*model, name)) is ABSENT:
            changes.append(Change((*model, name), value))
    changes += [Change((*model, "maxInputTokens"), prompt), Change((*model, "maxOutputTokens"), answer)]
    return (FileEdit(file, Form.JSON, tuple(changes)),)


def lengths(context_tokens: int) -> tuple[int, int]:
    """The longest answer and the longest prompt in tokens, which together fill the context."""
    answer = min(LONGEST_ANSWER_TOKENS, context_tokens // ANSWER_SHARE)
    return answer, context_tokens - answer


def read(files: Files) -> Present | None:
    """Our group, else the first one with a custom endpoint."""
    file = _file(files.around)
    document = files.document(file, Form.JSON)
    group = _group(document) if document is not None else None
    if document is None or group is None:
        return None
    models = group.get("models")
    entries = [e for e in models if isinstance(e, dict)] if isinstance(models, list) else []
    ids = [str(e["id"]) for e in entries if "id" in e]
    first = entries[0] if entries else {}
    key = group.get("apiKey")
    return Present(
        place=str(file),
        base_url=_base(str(first.get("url", group.get("url", "")))),
        model=ids[0] if ids else None,
        models=tuple(ids[1:]),
        key_is=KeyIs.COMMAND if isinstance(key, str) and REFERENCE.fullmatch(key) else KeyIs.NONE,
        context_tokens=_context(first),
        troubles=tuple(_troubles(group, str(file))),
    )


def _group(document: Document) -> dict[str, object] | None:
    root = document.get(())
    groups = [g for g in root if isinstance(g, dict)] if isinstance(root, list) else []
    custom = [g for g in groups if g.get("vendor") in (VENDOR, OLD_VENDOR)]
    return next((g for g in custom if g.get("name") == GROUP), next(iter(custom), None))


def _base(url: str) -> str | None:
    """The base URL that VS Code makes its requests below: it adds /v1 where the URL ends with no version."""
    base = ENDPOINT.sub("", url.strip())
    if not base or base != url.strip():
        return base or None
    base = base.rstrip("/")
    return base if re.search(r"/v\d+$", base) else f"{base}/v1"


def _context(model: dict[str, object]) -> int | None:
    whole, prompt, answer = (model.get(n) for n in ("contextWindow", "maxInputTokens", "maxOutputTokens"))
    if isinstance(whole, int):
        return whole
    return prompt + answer if isinstance(prompt, int) and isinstance(answer, int) else None


def _troubles(group: dict[str, object], place: str) -> Iterator[Trouble]:
    if group.get("vendor") == OLD_VENDOR:
        said = msg("the group {name} is of vendor {old}, which VS Code replaced by {new}",
                   name=str(group.get("name")), old=OLD_VENDOR, new=VENDOR)  # fmt: skip
        yield Trouble("CON002", Severity.WARNING, said, place)
    key = group.get("apiKey")
    if isinstance(key, str) and key and not REFERENCE.fullmatch(key):
        said = msg("apiKey holds a key in plain text, which VS Code does not use: it wants one from its own store")
        yield Trouble("CLT001", Severity.ERROR, said, f"{place}: apiKey", mends=False)


def snippet(connection: Connection) -> str:
    """The whole file where there is none yet."""
    answer, prompt = lengths(connection.context_tokens or UNKNOWN_CONTEXT_TOKENS)
    model = {
        "id": connection.model, "name": connection.model, "url": connection.with_v1 + "/chat/completions",
        "toolCalling": True, "vision": False, "maxInputTokens": prompt, "maxOutputTokens": answer,
    }  # fmt: skip
    group = {"name": GROUP, "vendor": VENDOR, "apiType": "chat-completions", "models": [model]}
    head = f"// Enter the key ({connection.key_env}) in VS Code.\n"
    return head + json.dumps([group], indent=2, ensure_ascii=False)


def _file(around: Surroundings) -> Path:
    """The file of the default profile: of the portable installation, else the first directory that is there."""
    portable = around.environ.get("VSCODE_PORTABLE", "").strip()
    if portable:
        return Path(portable) / "user-data" / "User" / NAME
    roots = [around.home / "Library" / "Application Support", around.config("")]
    if around.environ.get("APPDATA", "").strip():
        roots.insert(0, Path(around.environ["APPDATA"]))
    places = [root / product / "User" for product in ("Code", "Code - Insiders") for root in roots]
    there = next((place for place in places if place.is_dir()), None)
    return (there or roots[-1] / "Code" / "User") / NAME


CLIENT = Client(
    name="vscode",
    title="VS Code",
    protocol=Protocol.CHAT,
    package="github microsoft/vscode",
    version="00812842",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(
        msg("Enter the key in VS Code: Chat: Manage Language Models, the group Trimtab, Update API Key."),
        msg("It needs VS Code 1.122 or newer; a profile of its own has its own file below User/profiles."),
    ),
    needs_tools=True,
)
