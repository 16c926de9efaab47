"""Addresses of this host as a container sees them."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

HOST = "host.docker.internal"
"""Docker Desktop knows the name; on Linux `--add-host=host.docker.internal:host-gateway` gives it."""
OWN = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def from_container(url: str) -> str:
    """The URL with Docker's name of the host where it names this host by a name that is the container's own inside."""
    parts = urlsplit(url)
    if parts.hostname not in OWN:
        return url
    return urlunsplit(parts._replace(netloc=HOST if parts.port is None else f"{HOST}:{parts.port}"))
