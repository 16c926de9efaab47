"""What was seen of an endpoint: each request and what came of it, as values that rules judge."""

from __future__ import annotations

from enum import StrEnum

import msgspec

MOST_BODY = 2000
COMPLETIONS = ("chat", "stream", "tools")
"""Steps that ask for a completion."""


class Trouble(StrEnum):
    """Why no HTTP answer came."""

    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect-timeout"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    CUT = "cut"
    NOT_HTTP = "not-http"
    TLS_TO_PLAIN = "tls-to-plain"
    PLAIN_TO_TLS = "plain-to-tls"
    CERTIFICATE = "certificate"
    PROXY = "proxy"
    OTHER = "other"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `step` names it: "connect", "health", "version", "models", "chat", "stream", "tools", ...

    `body` is cut; of a stream it is the event that tells an error, or what came in place of events. `first_s` and
    `lumps` are of a stream: seconds to its first event, and how many network reads it came in, of `events` in all.
    """

    step: str
    url: str
    method: str = "GET"
    status: int | None = None
    kind: str = ""  # content type
    server: str = ""  # what the headers say answers
    location: str = ""
    asks: str = ""  # WWW-Authenticate: how the server wants to be told who asks
    body: str = ""
    trouble: Trouble | None = None
    detail: str = ""
    seconds: float = 0.0
    first_s: float | None = None
    events: int = 0
    lumps: int = 0
    text: str = ""
    finish_reason: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the server answered with a success."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def quoted(self) -> str:
        """As evidence, in one line."""
        came = str(self.status) if self.status is not None else f"{self.trouble}: {self.detail}".rstrip(": ")
        asks = f", {self.asks}" if self.asks else ""
        body = " ".join(self.body.split()) if self.failed else ""
        shown = f": {body[:157]}..." if len(body) > 160 else f": {body}" if body else ""
        return f"{self.step}: {self.method} {self.url} -> {came}{asks}{shown}"

    @property
    def failed(self) -> bool:
        """Whether it is no success, or one whose body holds an error or no completion at all."""
        return not self.ok or (self.step in COMPLETIONS and bool(self.body) and '"choices"' not in self.body)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the key that was sent, never its text."""

    has_blank: bool = False
    has_quotes: bool = False
    has_scheme: bool = False  # begins with "Bearer "
    length: int = 0


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen behind one URL. `listening`: where on this host something else listens that may be meant."""

    url: str
    key: Key | None = None
    model: str | None = None  # the id that a client would send
    models: tuple[str, ...] = ()
    context_tokens: int | None = None
    version: str | None = None
    answers: tuple[Answer, ...] = ()
    local: bool = False
    container: bool = False
    listening: tuple[str, ...] = ()
    proxies: dict[str, str] = msgspec.field(default_factory=dict)

    def answer(self, step: str) -> Answer | None:
        """What came of the step; None where it was not taken."""
        return next((answer for answer in self.answers if answer.step == step), None)
