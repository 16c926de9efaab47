"""Addresses in a configuration: of back ends (URLs) and of the gateway itself (HOST:PORT). Opens nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from trimtab.errors import UsageError
from trimtab.messages import msg


class Base(msgspec.Struct, frozen=True):
    """A back end's URL in its parts; `path` is "" or begins with a slash."""

    host: str
    port: int
    tls: bool
    path: str


def base_of(url: str) -> Base:
    """The parts of a base URL with or without /v1. UsageError when it is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_url(url) from None
    bad = parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment
    if bad or port == 0 or any(c.isspace() or ord(c) < 32 for c in url):
        raise _no_url(url)
    if parts.username or parts.password:
        raise UsageError(
            msg("the URL of {host} holds a user or a password", host=parts.hostname),
            hint=msg("Take them out, and name the key's place: key: {{env: NAME}}."),
        )
    tls = parts.scheme == "https"
    assert parts.hostname is not None
    return Base(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))


def _no_url(url: str) -> UsageError:
    """Without what may be a secret: a user, a password, a query."""
    scheme, mark, rest = url.partition("?")[0].rpartition("//")
    shown = f"{scheme}{mark}{rest.rpartition('@')[2]}"
    return UsageError(
        msg("{url} is no URL of a server", url=repr(shown)),
        hint=msg("Write it as http://HOST:PORT/v1 or https://HOST/v1."),
    )


def listen_of(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, [IPV6]:PORT or :PORT (all networks). UsageError when it is none."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    good = colon and port.isascii() and port.isdecimal() and 0 <= int(port) <= 65535
    if not good or (":" in bare and bare == host):
        raise UsageError(
            msg("{text} is no address to listen on", text=repr(text)),
            hint=msg("Write HOST:PORT, e.g. 127.0.0.1:8080, or 0.0.0.0:8080 for all networks."),
        )
    return bare or "0.0.0.0", int(port)
