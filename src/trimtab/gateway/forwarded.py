"""Who a client is when proxies stand before the gateway, and which pages of other sites may ask it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from trimtab.gateway.inbound import Inbound
from trimtab.gateway.request import Request


class Edge:
    """What is done to every request first, where the configuration names proxies or origins."""

    def __init__(self, proxies: Sequence[str], origins: Sequence[str]) -> None:
        self._proxies = Proxies(proxies) if proxies else None
        self._origins = Origins(origins) if origins else None

    def __call__(self, request: Request, client: Inbound) -> bool:
        """Name the client, allow its page; True when it was a browser's question that is answered herewith."""
        headers = request.headers
        if self._proxies is not None:
            client.peer = self._proxies.client(client.address, headers.get(b"x-forwarded-for", b""))
        origin = headers.get(b"origin")
        if self._origins is None or origin is None:
            return False
        if request.method == b"OPTIONS" and b"access-control-request-method" in headers:
            asked = headers.get(b"access-control-request-headers", b"")
            client.whole(200, b"", extra=self._origins.preflight(origin, asked))
            return True
        request.extra = self._origins.lines(origin)
        return False


class Proxies:
    """The networks whose X-Forwarded-For is believed."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(network) for network in networks]

    def client(self, peer: str, forwarded: bytes) -> str:
        """The client of a connection from `peer`: the last address in the header that is no trusted proxy's."""
        found = peer
        for word in reversed(forwarded.decode("latin-1").split(",")):
            if not self._trusted(found):
                break
            named = word.strip()
            if not _is_address(named):
                break
            found = named
        return found

    def _trusted(self, address: str) -> bool:
        if not _is_address(address):
            return address == ""  # a Unix socket
        parsed = ip_address(address)
        return any(parsed in network for network in self._networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class Origins:
    """The origins that browsers may ask from (CORS)."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = b"*" in (encoded := frozenset(origin.encode() for origin in origins))
        self._origins = encoded

    def lines(self, origin: bytes) -> bytes:
        """Header lines for an answer to `origin`, each ending in CRLF; none for an origin that may not ask."""
        if not self._any and origin not in self._origins:
            return b""
        told = b"*" if self._any else origin
        exposed = b"Access-Control-Expose-Headers: x-request-id, request-id, retry-after\r\n"
        return b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n%b" % (told, exposed)

    def preflight(self, origin: bytes, asked: bytes) -> bytes:
        """Header lines for the answer to a browser's question; `asked` are the headers that it wants to send."""
        allowed = self.lines(origin)
        if not allowed:
            return b""
        return allowed + (
            b"Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\nAccess-Control-Max-Age: 600\r\n"
            b"Access-Control-Allow-Headers: %b\r\n" % (asked or b"authorization, content-type, x-api-key")
        )
