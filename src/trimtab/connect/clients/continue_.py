"""Continue: a model in config.yaml, for the editor and cn. Read in @continuedev/cli 1.5.47 and by running it."""

from __future__ import annotations

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Form, Item, Steps
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg

ENTRY: Steps = ("models", Item("name", "Trimtab"))
OPENS, CLOSES = "${{ secrets.", " }}"


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The model's entry; a new file gets the heads that the format asks for."""
    file = around.directory("CONTINUE_GLOBAL_DIR", ".continue") / "config.yaml"
    document = Files(around).document(file, Form.YAML)
    heads = {"name": "Local", "version": "0.0.1", "schema": "v1"}
    changes = [
        Change((name,), value) for name, value in heads.items() if document is None or document.get((name,)) is ABSENT
    ]
    key = connection.written_key or f"{OPENS}{connection.key_env}{CLOSES}"
    changes += [
        Change((*ENTRY, "provider"), "openai"),
        Change((*ENTRY, "model"), connection.model),
        Change((*ENTRY, "apiBase"), connection.with_v1),
        Change((*ENTRY, "apiKey"), key, secret=connection.write_key),
        Change((*ENTRY, "roles"), ["chat", "edit", "apply"]),
        Change((*ENTRY, "defaultCompletionOptions", "contextLength"), connection.context_tokens or ABSENT),
    ]
    return (FileEdit(file, Form.YAML, tuple(changes)),)


def read(files: Files) -> Present | None:
    """Our entry; where there is none, the first model that has an address."""
    file = files.around.directory("CONTINUE_GLOBAL_DIR", ".continue") / "config.yaml"
    document = files.document(file, Form.YAML)
    if document is None:
        return None
    entry = ENTRY
    if document.get(entry) is ABSENT:
        listed = document.get(("models",))
        named = [
            m["name"] for m in (listed if isinstance(listed, list) else []) if isinstance(m, dict) and m.get("apiBase")
        ]
        entry = ("models", Item("name", str(named[0]))) if named else ENTRY
    key = text_at(document, (*entry, "apiKey")) or ""
    variable = key.removeprefix(OPENS).removesuffix(CLOSES).strip() if key.startswith("${{") else ""
    return Present(
        place=str(file),
        base_url=text_at(document, (*entry, "apiBase")),
        model=text_at(document, (*entry, "model")),
        key_is=KeyIs.VARIABLE if variable else KeyIs.WRITTEN if key else KeyIs.NONE,
        key_variable=variable,
        key="" if variable else key,
        context_tokens=tokens_at(document, (*entry, "defaultCompletionOptions", "contextLength")),
    )


def snippet(connection: Connection) -> str:
    """The entry to paste below `models:`."""
    key = f"{OPENS}{connection.key_env}{CLOSES}" if connection.needs_key else "none"
    lines = [
        "  - name: Trimtab", "    provider: openai", f"    model: {connection.model}",
        f"    apiBase: {connection.with_v1}", f"    apiKey: {key}", "    roles: [chat, edit, apply]",
    ]  # fmt: skip
    if connection.context_tokens:
        lines += ["    defaultCompletionOptions:", f"      contextLength: {connection.context_tokens}"]
    return "\n".join(["models:", *lines])


CLIENT = Client(
    name="continue",
    title="Continue",
    protocol=Protocol.CHAT,
    package="npm @continuedev/cli",
    version="1.5.47",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(
        msg("cn finds the key in the environment; the editor's extension in the .env file of Continue's directory."),
    ),
    prompt_tokens=1_500,
    answer_tokens=4_000,
    needs_tools=True,
)
