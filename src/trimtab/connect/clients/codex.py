"""Codex CLI: a provider in config.toml. Read in @openai/codex 0.171.0 and by running it."""

from __future__ import annotations

from trimtab.connect.client import Change, Client, FileEdit, Files, KeyIs, Present, Trouble, text_at, tokens_at
from trimtab.connect.documents import ABSENT, Document, Form
from trimtab.connect.values import Connection, Protocol, Surroundings
from trimtab.messages import msg
from trimtab.rules.rule import Severity

PROVIDER = "trimtab"
PROVIDERS = "model_providers"
RESPONSES = "responses"
"""The only wire protocol left: any block that says `chat`, used or not, stops 0.171 from starting."""


def edits(connection: Connection, around: Surroundings) -> tuple[FileEdit, ...]:
    """The provider, and it chosen; a stale protocol in any other block is mended too."""
    file = around.directory("CODEX_HOME", ".codex") / "config.toml"
    block = (PROVIDERS, PROVIDER)
    literal = connection.written_key
    changes = [
        Change(("model",), connection.model),
        Change(("model_provider",), PROVIDER),
        Change(("model_context_window",), connection.context_tokens or ABSENT),
        Change((*block, "name"), "Trimtab"),
        Change((*block, "base_url"), connection.with_v1),
        Change((*block, "wire_api"), RESPONSES),
        Change((*block, "env_key"), ABSENT if literal else connection.key_env),
        Change((*block, "experimental_bearer_token"), literal or ABSENT, secret=connection.write_key),
    ]
    document = Files(around).document(file, Form.TOML)
    stale = [name for name in _stale(document) if name != PROVIDER]
    changes += [Change((PROVIDERS, name, "wire_api"), RESPONSES) for name in stale]
    return (FileEdit(file, Form.TOML, tuple(changes)),)


def read(files: Files) -> Present | None:
    """The provider that is chosen, and stale blocks wherever they stand."""
    home = files.around.directory("CODEX_HOME", ".codex")
    file = home / "config.toml"
    document = files.document(file, Form.TOML)
    if document is None:
        return None
    chosen = text_at(document, ("model_provider",)) or "openai"
    block = (PROVIDERS, chosen)
    variable, token = text_at(document, (*block, "env_key")), text_at(document, (*block, "experimental_bearer_token"))
    return Present(
        place=str(file),
        base_url=text_at(document, (*block, "base_url")),
        model=text_at(document, ("model",)),
        key_is=KeyIs.VARIABLE if variable else KeyIs.WRITTEN if token else KeyIs.NONE,
        key_variable=variable or "",
        key=token or "",
        active=chosen == PROVIDER or text_at(document, (PROVIDERS, PROVIDER, "base_url")) is None,
        context_tokens=tokens_at(document, ("model_context_window",)),
        troubles=(*_stale_troubles(document, str(file)), *_login(files, document, chosen)),
    )


def _stale(document: Document | None) -> list[str]:
    blocks = ABSENT if document is None else document.get((PROVIDERS,))
    named = blocks.items() if isinstance(blocks, dict) else ()
    return [name for name, block in named if isinstance(block, dict) and block.get("wire_api", RESPONSES) != RESPONSES]


def _stale_troubles(document: Document, place: str) -> list[Trouble]:
    return [
        Trouble(
            "CON002",
            Severity.ERROR,
            msg(
                "[{table}] says wire_api = {protocol}: Codex speaks {only} alone and does not start",
                table=f"{PROVIDERS}.{name}",
                protocol=repr(document.get((PROVIDERS, name, "wire_api"))),
                only=RESPONSES,
            ),
            f"{place}: {PROVIDERS}.{name}.wire_api",
        )
        for name in _stale(document)
    ]


def _login(files: Files, document: Document, chosen: str) -> list[Trouble]:
    """auth.json holds OpenAI's key or login: it is used where OpenAI is the provider, or a block asks for it."""
    auth = files.document(files.around.directory("CODEX_HOME", ".codex") / "auth.json", Form.JSON)
    asked = document.get((PROVIDERS, chosen, "requires_openai_auth")) is True
    if chosen != "openai" and not asked:
        return []
    said = (
        msg("its requests go to OpenAI with the login of auth.json, not to your server")
        if auth
        else msg("it asks for a login to OpenAI")
    )
    return [Trouble("CLT036", Severity.ERROR, said, "config.toml: model_provider")]


def snippet(connection: Connection) -> str:
    """One run without any file."""
    options = {
        "model_provider": PROVIDER,
        f"{PROVIDERS}.{PROVIDER}.name": "Trimtab",
        f"{PROVIDERS}.{PROVIDER}.base_url": connection.with_v1,
        f"{PROVIDERS}.{PROVIDER}.wire_api": RESPONSES,
        f"{PROVIDERS}.{PROVIDER}.env_key": connection.key_env,
    }
    words = " \\\n  ".join(f"-c {name}='\"{value}\"'" for name, value in options.items())
    return f"codex exec -m '{connection.model}' \\\n  {words} \\\n  'Name three colours.'"


CLIENT = Client(
    name="codex",
    title="Codex CLI",
    protocol=Protocol.RESPONSES,
    package="npm @openai/codex",
    version="0.171.0",
    with_v1=True,
    edits=edits,
    read=read,
    snippet=snippet,
    notes=(
        msg("Codex reads the key from the variable in every run: export it in your shell's profile."),
        msg('A stale block with wire_api = "chat" is mended wherever it stands, since Codex would not start.'),
    ),
    prompt_tokens=9_200,
    answer_tokens=4_000,
    needs_tools=True,
)
