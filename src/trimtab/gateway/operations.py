"""What the gateway answers about itself: /metrics, /readyz; /admin and /console are handed on, all else is no path."""

from __future__ import annotations

import time

import msgspec

from trimtab.gateway.config import Config
from trimtab.gateway.front import Front, Mounted, nothing_mounted
from trimtab.gateway.inbound import Inbound
from trimtab.gateway.metrics import Metrics
from trimtab.gateway.request import Answering, Refused, Request

TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class Readiness(msgspec.Struct):
    """The body of /readyz."""

    status: str
    draining: bool
    models_down: list[str]


class Operations:
    """Mounted beside the hot path. `admin` and `console` are None where the configuration turns them off."""

    def __init__(
        self, front: Front, metrics: Metrics, config: Config, admin: Mounted | None, console: Mounted | None = None
    ) -> None:
        self._front, self._metrics, self._admin, self._console = front, metrics, admin, console
        self.config = config
        self.draining = False

    def __call__(self, request: Request, client: Inbound) -> Answering | None:
        path = request.path
        if path == b"/metrics" and self.config.metrics:
            _takes_get(request)
            client.whole(200, self._metrics.text(), content_type=TEXT)
        elif path == b"/readyz":
            _takes_get(request)
            found = self.readiness()
            client.whole(200 if found.status == "ready" else 503, msgspec.json.encode(found))
        elif self._admin is not None and (path == b"/admin" or path.startswith(b"/admin/")):
            return self._admin(request, client)
        elif self._console is not None and (path == b"/console" or path.startswith(b"/console/")):
            return self._console(request, client)
        else:
            nothing_mounted(request, client)
        return None

    def readiness(self) -> Readiness:
        """Ready: not draining, and a back end would be asked for some model; without models, any back end.

        Failures alone close nothing: of back ends that are left alone the least bad is asked, and what is down behind
        one gateway is so behind all. Only where the active checks hold every back end for down is each request refused.
        """
        now, routes = time.monotonic(), self._front.routes
        down: list[str] = []
        for name in self.config.models:
            route = routes.find(name)
            if route is None or not any(t.back_end.ready(now) for level in route.levels for t in level):
                down.append(name)
        asked = not routes.back_ends or any(b.healthy for b in routes.back_ends)
        ready = not self.draining and asked
        return Readiness("ready" if ready else "not ready", self.draining, down)


def _takes_get(request: Request) -> None:
    if request.method not in (b"GET", b"HEAD"):
        raise Refused(405, "method_not_allowed", f"{request.path.decode('latin-1')} takes GET")
