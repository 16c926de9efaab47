"""Who may ask for what, and how much: keys, scopes and limits. Decides in memory; what was used is told afterwards."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable

from trimtab.gateway.inbound import Refused

WINDOW_S = 60.0


def hash_of(key: bytes) -> bytes:
    """SHA-256 of a key. Keys are 256 random bits, so a slow hash for passwords would protect nothing more."""
    return hashlib.sha256(key).digest()


class Key:
    """One key's rights and what it uses now. None means no limit."""

    __slots__ = ("expires", "id", "label", "models", "parallel", "parallel_limit", "requests", "requests_per_minute",
                 "since", "tokens", "tokens_per_minute")  # fmt: skip

    def __init__(
        self, id: str, label: str = "", *, models: frozenset[str] | None = None, requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None, parallel: int | None = None, expires: float | None = None,
    ) -> None:  # fmt: skip
        self.id, self.label, self.models, self.expires = id, label, models, expires
        self.requests_per_minute, self.tokens_per_minute, self.parallel_limit = (
            requests_per_minute, tokens_per_minute, parallel,
        )  # fmt: skip
        self.parallel = self.requests = self.tokens = 0
        self.since = 0.0

    def enter(self, now: float) -> None:
        """Count one request in, or Refused 429 with the seconds to wait."""
        if now - self.since >= WINDOW_S:
            self.since, self.requests, self.tokens = now, 0, 0
        over = None
        if self.parallel_limit is not None and self.parallel >= self.parallel_limit:
            over = f"{self.parallel_limit} requests at once"
        elif self.requests_per_minute is not None and self.requests >= self.requests_per_minute:
            over = f"{self.requests_per_minute} requests a minute"
        elif self.tokens_per_minute is not None and self.tokens >= self.tokens_per_minute:
            over = f"{self.tokens_per_minute} tokens a minute"
        if over is not None:
            wait = max(1, round(self.since + WINDOW_S - now))
            raise Limited(f"this key is limited to {over}", 1 if "at once" in over else wait)
        self.requests += 1
        self.parallel += 1

    def leave(self, tokens: int) -> None:
        """Count one request out, with the tokens it used."""
        self.parallel -= 1
        self.tokens += tokens


class Limited(Refused):
    """A limit was reached; `wait_s` seconds later it may be open again."""

    def __init__(self, message: str, wait_s: int) -> None:
        super().__init__(429, "rate_limit_exceeded", message)
        self.wait_s = wait_s


class Keys:
    """The keys by the hash of their text."""

    def __init__(self, keys: Iterable[tuple[bytes, Key]] = ()) -> None:
        self._keys = dict(keys)

    def find(self, text: bytes) -> Key:
        """The key of a header value. Refused 401, naming blanks and quotes that came along with a good key."""
        found = self._keys.get(hash_of(text))
        if found is None:
            raise self._refusal(text)
        if found.expires is not None and time.time() >= found.expires:
            raise Refused(401, "key_expired", f"the key {found.label or found.id} has expired")
        return found

    def _refusal(self, text: bytes) -> Refused:
        if not text:
            return Refused(401, "key_missing", "no key was sent: Authorization: Bearer KEY, or x-api-key: KEY")
        bare = text.strip(b" \t\"'`")
        if bare != text and hash_of(bare) in self._keys:
            return Refused(401, "key_with_blanks", "the key is right but came with blanks or quotes around it")
        return Refused(401, "key_wrong", "no such key")


def key_text(headers: dict[bytes, bytes]) -> bytes:
    """The key in a request's headers: a bearer token, else Anthropic's x-api-key."""
    value = headers.get(b"authorization")
    if value is None:
        return headers.get(b"x-api-key", b"")
    if value[:7].lower() == b"bearer ":
        return value[7:]
    return value
