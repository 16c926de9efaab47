"""What stands at each connection's other side: path, key, body, model and limit, then an exchange."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import msgspec

from trimtab.gateway import body as bodies
from trimtab.gateway.admission import Keys, hash_of, key_text
from trimtab.gateway.counting import Counting
from trimtab.gateway.exchange import Exchange
from trimtab.gateway.inbound import Inbound, Told
from trimtab.gateway.listing import entry, listing
from trimtab.gateway.paths import SERVED, Served
from trimtab.gateway.request import Answering, Refused, Request
from trimtab.gateway.routes import Routes, Target
from trimtab.gateway.stored import Stored
from trimtab.gateway.usage import Ledger, Record

# Answers what is not passed on (/admin, /metrics, /readyz ...). Refused 404 for a path that it does not know.
Mounted = Callable[[Request, Inbound], Answering | None]
MAX_ID = 128  # bytes of a client's own request id


Before = Callable[[Request, Inbound], bool]  # sees every request first; True when it has answered it


def nothing_mounted(request: Request, client: Inbound) -> None:
    """There is no other path."""
    raise Refused(404, "not_found", f"there is no {request.path.decode('latin-1')} here")


def nobody_told(request: Request, client: Inbound, refused: Refused) -> None:
    """Refusals are counted nowhere."""


class Front:
    """Answers each request of each connection, or hands it to an exchange. `routes` may be exchanged at any moment."""

    def __init__(self, keys: Keys, routes: Routes, ledger: Ledger, mounted: Mounted = nothing_mounted) -> None:
        self.keys, self.routes, self._ledger, self.mounted = keys, routes, ledger, mounted
        self.refused: Told = nobody_told
        self.counting, self.stored = Counting(ledger), Stored()
        self.before: Before | None = None
        self.live: set[Exchange] = set()
        self._ids = itertools.count(1)
        self._id_begins = b"req-%b-" % os.urandom(6).hex().encode()

    def _ended(self, exchange: Exchange, record: Record, uncounted: Target | None) -> None:
        self.live.discard(exchange)
        if uncounted is None:
            self._ledger(record)
        else:
            self.counting(record, exchange.body, uncounted)

    def __call__(self, request: Request, client: Inbound) -> Answering | None:
        given = request.headers.get(b"x-request-id", b"")
        request.id = given if 0 < len(given) <= MAX_ID else self._id_begins + b"%d" % next(self._ids)
        if self.before is not None and self.before(request, client):
            return None
        served = SERVED.get(request.path)
        try:
            if served is None:
                return self._other(request, client)
            return self._begin(served, request, client)
        except Refused as refused:
            self.refused(request, client, refused)
            client.refuse(request, refused)
        return None

    def _begin(self, served: Served, request: Request, client: Inbound) -> Exchange | None:
        if request.method != b"POST":
            raise Refused(405, "method_not_allowed", f"{request.path.decode('latin-1')} takes POST", allow=b"POST")
        headers, routes = request.headers, self.routes
        if not request.digest:
            request.digest = hash_of(key_text(headers))
        key = self.keys.by_digest(request.digest) or self.keys.find(key_text(headers))
        content_type = headers.get(b"content-type")
        asked = (bodies.read_form if served.form else bodies.read)(request.body, content_type)
        route = routes.find(asked.model)
        if route is None:
            raise Refused(404, "model_not_found", f"there is no model {asked.model[:MAX_ID]} here", param="model")
        if not route.takes(served, routes.between):
            told = f"no back end of {asked.model} can be asked for {served.path.decode()}"
            raise Refused(404, "protocol_not_served", told)
        long = len(request.body) > route.long_prompt_bytes
        held = key.enter(time.time(), asked.model, served.path, request.body, long)
        exchange = Exchange(client, request, served, key, route, routes.between, asked, self._ended, held, long)
        self.live.add(exchange)
        exchange.begin()
        return exchange if exchange in self.live else None

    def _other(self, request: Request, client: Inbound) -> Answering | None:
        path = request.path[3:] if request.path.startswith(b"/v1/") else request.path
        if path == b"/models" or path.startswith(b"/models/"):
            self._models(path, request, client)
        elif path.startswith(b"/responses/"):
            return self.stored(path, request, client, self.keys.find(key_text(request.headers)), self.routes)
        elif path == b"/health":
            self._health(client)
        elif path == b"/healthz":
            client.whole(200, b'{"status":"ok"}')
        else:
            return self.mounted(request, client)
        return None

    def _models(self, path: bytes, request: Request, client: Inbound) -> None:
        if request.method not in (b"GET", b"HEAD"):
            told = f"{request.path.decode('latin-1')} takes GET"
            raise Refused(405, "method_not_allowed", told, allow=b"GET, HEAD")
        key, routes = self.keys.find(key_text(request.headers)), self.routes
        names = [n for n in routes.names if key.may_use(n)]
        if path == b"/models":
            client.whole(200, msgspec.json.encode(listing([entry(n, routes) for n in names])))
            return
        name = unquote_to_bytes(path[len("/models/") :]).decode("utf-8", "replace")  # clients write org%2Fmodel
        if name not in names:
            raise Refused(404, "model_not_found", f"the model {name} does not exist or this key may not use it")
        client.whole(200, msgspec.json.encode(entry(name, routes)))

    def _health(self, client: Inbound) -> None:
        """As vLLM's: an empty 200 while there is a back end that can be asked, else 503."""
        now = time.monotonic()
        ready = any(back_end.ready(now) for back_end in self.routes.back_ends)
        client.whole(200 if ready else 503, b"")
