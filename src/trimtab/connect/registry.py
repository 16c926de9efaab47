"""The clients that Trimtab knows: one line each."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from trimtab.connect.client import Client
from trimtab.errors import UsageError
from trimtab.messages import msg

# One line a client: its name on the command line and the module that declares it.
CLIENTS: dict[str, str] = {
    "curl": "curl",
    "openai-python": "openai_python",
    "codex": "codex",
    "claude-code": "claude_code",
    "opencode": "opencode",
    "qwen-code": "qwen_code",
    "cline": "cline",
    "continue": "continue_",
    "client.json": "client_json",
    "openai-node": "openai_node",
    "anthropic-python": "anthropic_python",
    "anthropic-node": "anthropic_node",
    "langchain": "langchain",
    "llamaindex": "llamaindex",
    "litellm": "litellm",
    "aider": "aider",
    "zed": "zed",
    "vscode": "vscode",
    "open-webui": "open_webui",
    "dify": "dify",
}

UNFIT = {
    "gemini-cli": msg("Gemini CLI speaks Gemini's own protocol alone; it takes no OpenAI URL"),
}
"""Programs that cannot be set to such a server. Gemini CLI: read in npm @google/gemini-cli 0.61.0."""


def client(name: str) -> Client:
    """The client of that name. UsageError naming the nearest, where there is none."""
    if name in UNFIT:
        raise UsageError(UNFIT[name], hint=msg("Qwen Code, which began as a copy of it, takes one."))
    if name not in CLIENTS:
        near = get_close_matches(name.lower(), CLIENTS, n=1)
        raise UsageError(
            msg("Trimtab knows no client called {name}", name=repr(name)),
            hint=msg("Did you mean {near}?", near=near[0]) if near else msg("List them with: trimtab connect"),
        )
    found: Client = import_module(f"trimtab.connect.clients.{CLIENTS[name]}").CLIENT
    return found


def clients() -> tuple[Client, ...]:
    """All of them, as the table has them."""
    return tuple(client(name) for name in CLIENTS)
