"""Which back ends serve a model, which of them is asked next, and which is left alone for a while."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from trimtab.gateway.outbound import Address, Pool

FAILURES = 3  # in a row, after which a back end is left alone
OPEN_S = 5.0  # for how long; then one request tries it again


class BackEnd:
    """One server behind the gateway. `prefix` is the path before the protocol's own, "" or "/v1"-less base path."""

    __slots__ = ("address", "failures", "fixed", "name", "open_until", "outstanding", "pool", "prefix", "weight")

    def __init__(self, name: str, address: Address, *, prefix: str = "", key: str = "", weight: float = 1.0) -> None:
        self.name, self.address, self.weight = name, address, weight
        self.pool = Pool(address)
        self.prefix = prefix.encode()
        usual = 443 if address.ssl else 80
        host = address.host if address.port == usual else f"{address.host}:{address.port}"
        lines = f"Host: {host}\r\nAccept-Encoding: identity\r\n"
        self.fixed = (lines + (f"Authorization: Bearer {key}\r\n" if key else "")).encode("latin-1")
        self.outstanding = 0
        self.failures = 0
        self.open_until = 0.0

    def ready(self, now: float) -> bool:
        """Whether it may be asked: healthy, or its time alone is over (then one request at a time tries it)."""
        return self.failures < FAILURES or (now >= self.open_until and self.outstanding == 0)

    def failed(self) -> None:
        """A request failed for a reason that is the back end's."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.open_until = time.monotonic() + OPEN_S

    def succeeded(self) -> None:
        """It answered."""
        self.failures = 0


class Target:
    """A model of a back end: `model` is the id that it goes by there."""

    __slots__ = ("back_end", "model")

    def __init__(self, back_end: BackEnd, model: str) -> None:
        self.back_end, self.model = back_end, model


class Route:
    """What a model name leads to: levels of equal replicas, each level the fall-back of the one before."""

    __slots__ = ("levels", "name")

    def __init__(self, name: str, levels: Iterable[Iterable[Target]]) -> None:
        self.name = name
        self.levels = tuple(tuple(level) for level in levels)

    def choose(self, tried: Iterable[Target] = ()) -> Target | None:
        """The least busy replica of the first level that has one ready; None when all were tried or are left alone."""
        now = time.monotonic()
        for level in self.levels:
            found = [t for t in level if t not in tried and t.back_end.ready(now)]
            if len(found) == 1:
                return found[0]
            if found:
                return min(found, key=lambda t: (t.back_end.outstanding + 1) / t.back_end.weight)
        return None


class Routes:
    """All models by name."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = dict(routes)

    def find(self, model: str) -> Route | None:
        """The route of a model name."""
        return self._routes.get(model)

    @property
    def names(self) -> tuple[str, ...]:
        """The model names, sorted."""
        return tuple(sorted(self._routes))
