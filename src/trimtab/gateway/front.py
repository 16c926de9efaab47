"""What stands at each connection's other side: path, key, body, model and limit, then an exchange."""

from __future__ import annotations

import asyncio
import time

import msgspec

from trimtab.gateway import body as bodies
from trimtab.gateway.admission import Keys, Limited, key_text
from trimtab.gateway.config import Bounds
from trimtab.gateway.errors import body as error_body
from trimtab.gateway.exchange import Exchange
from trimtab.gateway.inbound import Inbound, Refused, Request
from trimtab.gateway.routes import Routes
from trimtab.gateway.usage import Ledger

# Paths that are passed on by the model in their JSON body, without /v1; each is served with and without it.
PASSED = frozenset(
    {b"/chat/completions", b"/completions", b"/embeddings", b"/responses", b"/messages", b"/messages/count_tokens",
     b"/rerank", b"/score", b"/tokenize", b"/detokenize", b"/classify", b"/pooling"}
)  # fmt: skip

LONG_PROMPT_BYTES = 64 << 10


class Front:
    """Answers each request of each connection, or hands it to an exchange."""

    def __init__(self, keys: Keys, routes: Routes, ledger: Ledger, bounds: Bounds | None = None) -> None:
        self.keys, self.routes, self._ledger = keys, routes, ledger
        self.bounds = bounds or Bounds()
        self.live: set[Exchange] = set()
        self._left: asyncio.Future[None] | None = None

    async def quiet(self) -> None:
        """Return when no request is being answered."""
        while self.live:
            self._left = asyncio.get_running_loop().create_future()
            await self._left

    def ended(self, exchange: Exchange) -> None:
        """An exchange is over."""
        self.live.discard(exchange)
        if not self.live and self._left is not None and not self._left.done():
            self._left.set_result(None)

    def __call__(self, request: Request, client: Inbound) -> Exchange | None:
        try:
            return self._begin(request, client)
        except Limited as limited:
            extra = b"Retry-After: %d\r\n" % limited.wait_s
            client.whole(429, error_body(request.path, limited), extra=extra)
        except Refused as refused:
            client.whole(refused.status, error_body(request.path, refused))
        return None

    def _begin(self, request: Request, client: Inbound) -> Exchange | None:
        path = request.path
        path = path[3:] if path.startswith(b"/v1/") else path
        if path not in PASSED:
            self._other(path, request, client)
            return None
        if request.method != b"POST":
            raise Refused(405, "method_not_allowed", f"{path.decode('latin-1')} takes POST")
        key = self.keys.find(key_text(request.headers))
        asked = bodies.read(request.body)
        route = self.routes.find(asked.model)
        if route is None:
            raise Refused(404, "model_not_found", f"there is no model {asked.model} here")
        long = len(request.body) > LONG_PROMPT_BYTES
        held = key.enter(time.time(), asked.model, path, request.body, long)
        exchange = Exchange(client, request, path, key, route, asked, self._ledger, self.bounds, self.ended, held, long)
        self.live.add(exchange)
        exchange.begin()
        return exchange if exchange in self.live else None

    def _other(self, path: bytes, request: Request, client: Inbound) -> None:
        if path in (b"/healthz", b"/health", b"/readyz"):
            client.whole(200, b'{"status":"ok"}')
        elif path == b"/models":
            key = self.keys.find(key_text(request.headers))
            names = [n for n in self.routes.names if key.may_use(n)]
            data = [{"id": name, "object": "model", "owned_by": "trimtab"} for name in names]
            client.whole(200, msgspec.json.encode({"object": "list", "data": data}))
        else:
            raise Refused(404, "not_found", f"there is no {request.path.decode('latin-1', 'replace')} here")
