"""The text of a key: how one is made, how it is hashed, where a request carries it and what may have come along."""

from __future__ import annotations

import hashlib
import re
import secrets

PREFIX, ADMIN_PREFIX = "tt-", "tt-admin-"
RANDOM_BYTES = 32
SHOWN_CHARACTERS = 6  # of the random part, kept so that a key can be recognised: 36 of its 256 bits
_MOST, _PASSES = 256, 4  # what is looked at of a wrong key: whoever sends many must not cost much
_RANDOM_CHARACTERS = 43  # 32 bytes in base64 without padding

_ALONG = (  # what is told of it, and what it is; each is taken off both ends, again and again
    ("blanks", re.compile(rb"^(?:\s|\xa0|%20|\\[nrt])+|(?:\s|\xa0|%20|\\[nrt])+$")),
    ("quotes", re.compile(rb"^[\"'`]+|[\"'`]+$")),
    ("a word before it", re.compile(rb"^(?:bearer|token|authorization|x-api-key)\b[ :=]*", re.IGNORECASE)),
    ("a mark", re.compile(rb"^[<({\[]+|[>)}\],;.]+$")),
)


def minted(*, admin: bool = False) -> str:
    """A new key: 256 random bits after a prefix by which scanners for leaked secrets and people know it."""
    return (ADMIN_PREFIX if admin else PREFIX) + secrets.token_urlsafe(RANDOM_BYTES)


def start_of(text: str) -> str:
    """The few characters of a key that may be shown."""
    prefix = ADMIN_PREFIX if text.startswith(ADMIN_PREFIX) else PREFIX
    return text[: len(prefix) + SHOWN_CHARACTERS]


def hash_of(key: bytes) -> bytes:
    """SHA-256 of a key. Keys are 256 random bits, so a slow hash for passwords would protect nothing more."""
    return hashlib.sha256(key).digest()


def key_text(headers: dict[bytes, bytes]) -> bytes:
    """The key in a request's headers: a bearer token, else Anthropic's x-api-key."""
    value = headers.get(b"authorization")
    if not value or value.lower() == b"bearer":  # a client whose token is an empty variable sends this beside its key
        return headers.get(b"x-api-key", b"")
    if value[:7].lower() == b"bearer ":
        return value[7:]
    return value


def bare(text: bytes) -> tuple[bytes, list[str]]:
    """The key without what was copied along with it, and the names of what that was."""
    found: list[str] = []
    text = text[:_MOST]
    for _ in range(_PASSES):
        for name, pattern in _ALONG:
            rest = pattern.sub(b"", text)
            if rest != text and name not in found:
                found.append(name)
            text = rest
    return text, found


def misfit(text: bytes) -> str | None:
    """Why `text` can be no key of a gateway; None when it looks like one."""
    for prefix in (ADMIN_PREFIX.encode(), PREFIX.encode()):
        if text.startswith(prefix):
            whole = len(prefix) + _RANDOM_CHARACTERS
            return None if len(text) == whole else f"it has {len(text)} characters, a whole key has {whole}"
    return f"keys of this gateway begin with {PREFIX}"
