"""What a client is told, and the surroundings in which its files are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

KEY_VARIABLE = "TRIMTAB_API_KEY"
NO_KEY = "none"
"""Sent where a server asks for no key and the client insists on one; no secret."""


class Protocol(StrEnum):
    """What a client speaks: the path below the server's root."""

    CHAT = "/v1/chat/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The three things (base URL, key, model id) and what else a client's configuration may hold.

    `key` is the key itself, where it is known; it goes into a file only with `write_key`.
    """

    root: str  # without /v1 and without a slash at its end
    model: str
    small_model: str = ""  # for titles and summaries; the same as `model` where empty
    key_env: str = KEY_VARIABLE
    key: str = ""
    needs_key: bool = True
    write_key: bool = False
    context_tokens: int | None = None  # as /v1/models tells it

    @property
    def with_v1(self) -> str:
        """The base URL of OpenAI clients."""
        return f"{self.root}/v1"

    @property
    def small(self) -> str:
        """The model for small tasks."""
        return self.small_model or self.model

    @property
    def written_key(self) -> str:
        """What may stand in a file as the key: the key where that was asked for, a placeholder where none is needed."""
        if not self.needs_key:
            return NO_KEY
        return self.key if self.write_key else ""


def without_key(connection: Connection) -> Connection:
    """The same where it is shown, or pasted: the key stays out."""
    return msgspec.structs.replace(connection, key="", write_key=False)


class Surroundings(msgspec.Struct, frozen=True):
    """Where a client runs: its environment, the user's home, the directory that it is started in."""

    environ: Mapping[str, str]
    home: Path
    cwd: Path

    def directory(self, variable: str, below_home: str) -> Path:
        """The directory that the environment names, else the one below the home."""
        named = self.environ.get(variable, "").strip()
        return Path(named).expanduser() if named else self.home / below_home

    def config(self, name: str) -> Path:
        """The client's directory below XDG_CONFIG_HOME."""
        return self.directory("XDG_CONFIG_HOME", ".config") / name
