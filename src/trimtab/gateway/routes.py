"""Which back ends serve a model, which of them is asked next, and which is left alone for a while."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter, itemgetter
from typing import Protocol

from trimtab.gateway.config import Bounds
from trimtab.gateway.outbound import Address, Pool
from trimtab.gateway.paths import Served

FAILURES = 3  # in a row, after which a back end is left alone
OPEN_S = 5.0  # for how long; then one request at a time tries it again
PREFIX = 4096  # bytes of a prompt that choose its replica, so that the same beginnings meet the same cache
LOAD_BOUND = 1.25  # of the mean load, above which the replica that a prefix chose is passed over


class Translation(Protocol):
    """One request in the words of another protocol, and its answer back."""

    path: bytes  # asked of the back end, without /v1

    def request(self, body: bytes) -> bytes:
        """The body for the back end. Refused 400 naming a field that has no counterpart."""

    def answer(self, body: bytes) -> bytes:
        """A whole answer for the client."""

    def error(self, status: int, body: bytes) -> bytes:
        """A back end's error for the client."""

    def stream(self) -> Stream:
        """The translation of one stream of events."""


class Stream(Protocol):
    """A stream's state."""

    def feed(self, piece: bytes) -> bytes:
        """Events for the client, of bytes that may be cut anywhere."""

    def end(self) -> bytes:
        """What is left to say at the stream's end."""


Between = Callable[[bytes, frozenset[str]], Translation | None]


class BackEnd:
    """One server behind the gateway."""

    __slots__ = (
        "_begins", "_ways", "address", "bare", "base", "bounds", "busy", "failures", "fixed", "healthy", "kind", "name",
        "open_until", "outstanding", "pool", "probing", "speaks", "weight",
    )  # fmt: skip

    def __init__(
        self, name: str, address: Address, *, base: bytes = b"/v1", bare: bytes = b"", fixed: bytes = b"",
        kind: str = "vllm", speaks: frozenset[str] = frozenset({"chat"}), weight: float = 1.0,
        bounds: Bounds | None = None,
    ) -> None:  # fmt: skip
        self.name, self.address = name, address
        self.pool = Pool(address)
        self.outstanding = self.failures = 0
        self.open_until = 0.0
        self.busy: dict[str, float] = {}  # model -> until when it is passed over
        self.healthy = True  # by the active checks
        self.probing = False  # whether a request tries it, after it was left alone
        self.set(base=base, bare=bare, fixed=fixed, kind=kind, speaks=speaks, weight=weight, bounds=bounds or Bounds())

    def set(
        self,
        *,
        base: bytes,
        bare: bytes,
        fixed: bytes,
        kind: str,
        speaks: frozenset[str],
        weight: float,
        bounds: Bounds,
    ) -> None:
        """What may change while it stays: paths before a protocol's own, header lines, protocols, weight, bounds."""
        self.base, self.bare, self.fixed, self.kind = base, bare, fixed, kind
        self.speaks, self.weight, self.bounds = speaks, weight, bounds
        self._ways: dict[bytes, bool] = {}
        self._begins: dict[bytes, bytes] = {}

    def begins(self, served: Served) -> bytes:
        """How a request for a path begins there, up to its content type and length."""
        found = self._begins.get(served.path)
        if found is None:
            place = (self.base if served.versioned else self.bare) + served.path
            found = self._begins[served.path] = b"POST %b HTTP/1.1\r\n%bContent-Type: " % (place, self.fixed)
        return found

    def takes(self, served: Served, between: Between) -> bool:
        """Whether it may be asked for what a client asks, in the client's protocol or through a translation."""
        known = self._ways.get(served.path)
        if known is None:
            known = served.protocol in self.speaks or between(served.path, self.speaks) is not None
            self._ways[served.path] = known
        return known

    def ready(self, now: float) -> bool:
        """Whether it may be asked: healthy, or its time alone is over and no other request is trying it."""
        if self.failures < FAILURES:
            return self.healthy
        return now >= self.open_until and not self.probing and self.healthy

    def enter(self) -> bool:
        """Count one request in; True when it is the one that tries the back end again."""
        self.outstanding += 1
        if self.failures >= FAILURES and not self.probing and time.monotonic() >= self.open_until:
            self.probing = True
            return True
        return False

    def leave(self, probe: bool) -> None:
        """Count one request out, with what `enter` said."""
        self.outstanding -= 1
        if probe:
            self.probing = False

    def failed(self) -> None:
        """A request failed for a reason that is the back end's."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.open_until = time.monotonic() + OPEN_S

    def succeeded(self) -> None:
        """It answered."""
        self.failures = 0


class Target:
    """A model of a back end: `model` is the id that it goes by there, `name` the gateway's whose replica it is.

    `name` is empty where that is the route's own.
    """

    __slots__ = ("back_end", "level", "model", "name", "salt", "weight")

    def __init__(
        self, back_end: BackEnd, model: str, weight: float | None = None, level: int = 0, name: str = ""
    ) -> None:
        self.back_end, self.model, self.level, self.name = back_end, model, level, name
        self.weight = back_end.weight if weight is None else weight
        self.salt = blake2b(f"{back_end.name}\n{model}".encode(), digest_size=16).digest()

    @property
    def busy_until(self) -> float:
        """Until when it is passed over, by its own 429."""
        busy = self.back_end.busy
        return busy.get(self.model, 0.0) if busy else 0.0

    @busy_until.setter
    def busy_until(self, until: float) -> None:
        self.back_end.busy[self.model] = until


class Route:
    """What a model name leads to: levels of equal replicas, each level the fall-back of the one before."""

    __slots__ = ("_ways", "affine", "hedge_after", "levels", "long_prompt_bytes", "name")

    def __init__(
        self, name: str, levels: Iterable[Iterable[Target]], *, affine: bool = False, hedge_after: float | None = None,
        long_prompt_bytes: int = 64 << 10,
    ) -> None:  # fmt: skip
        self.name, self.affine, self.hedge_after = name, affine, hedge_after
        self.long_prompt_bytes = long_prompt_bytes
        self.levels = tuple(tuple(level) for level in levels)
        self._ways: dict[bytes, tuple[tuple[Target, ...], ...]] = {}  # path -> the levels that can be asked for it

    def choose(
        self, served: Served, between: Between, body: bytes = b"", tried: Collection[Target] = ()
    ) -> Target | None:
        """A replica of the first level that has one ready; None when all were tried, are left alone or cannot.

        One that answered 429 is asked before its time is over only when every other was tried or is left alone.
        """
        now = time.monotonic()
        busy: Target | None = None
        for level in self._ways.get(served.path) or self._find_ways(served, between):
            free: list[Target] = []
            waiting: list[Target] = []
            for target in level:
                back_end = target.back_end
                if (back_end.failures < FAILURES and back_end.healthy) or back_end.ready(now):
                    if tried and target in tried:
                        continue
                    (waiting if back_end.busy and target.busy_until > now else free).append(target)
            if free:
                return _by_prefix(free, _prefix(body, served.prompt)) if self.affine else _least(free)
            if waiting and busy is None:
                busy = min(waiting, key=attrgetter("busy_until"))
        return busy

    def least_bad(self, served: Served, between: Between, tried: Collection[Target] = ()) -> Target | None:
        """Of those that are left alone after failures, the one with the fewest in a row; None when there is none.

        Of equals the first level's, then the least loaded. Asking it neither shortens its time alone nor counts as the
        one request that tries it. One that the active checks hold for down is not asked.
        """
        found = [
            (target.back_end.failures, level, (target.back_end.outstanding + 1) / target.weight, target)
            for level, targets in enumerate(self._ways.get(served.path) or self._find_ways(served, between))
            for target in targets
            if target.back_end.failures >= FAILURES and target.back_end.healthy and target not in tried
        ]
        return min(found, key=itemgetter(0, 1, 2))[3] if found else None

    def takes(self, served: Served, between: Between) -> bool:
        """Whether any back end of the model can be asked for this, ready or not."""
        return bool(self._ways.get(served.path) or self._find_ways(served, between))

    def _find_ways(self, served: Served, between: Between) -> tuple[tuple[Target, ...], ...]:
        levels = [tuple(t for t in level if t.back_end.takes(served, between)) for level in self.levels]
        ways = self._ways[served.path] = tuple(level for level in levels if level)
        return ways


class Routes:
    """All models by name; `entries` is what the back ends say of them in /v1/models."""

    def __init__(
        self, routes: Mapping[str, Route], between: Between | None = None,
        entries: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:  # fmt: skip
        self._routes = dict(routes)
        self.between = between or no_translation
        self.entries = dict(entries or {})

    def find(self, model: str) -> Route | None:
        """The route of a model name."""
        return self._routes.get(model)

    @property
    def names(self) -> tuple[str, ...]:
        """The model names, sorted."""
        return tuple(sorted(self._routes))

    @property
    def back_ends(self) -> tuple[BackEnd, ...]:
        """Every back end that a model leads to, each once."""
        targets = (t for route in self._routes.values() for level in route.levels for t in level)
        return tuple({id(t.back_end): t.back_end for t in targets}.values())


def no_translation(asks: bytes, speaks: frozenset[str]) -> None:
    """Each back end is asked only for the protocols that it speaks."""


def _least(targets: Sequence[Target]) -> Target:
    """The least loaded; the first of equals."""
    found, least = targets[0], math.inf
    for target in targets:
        load = (target.back_end.outstanding + 1) / target.weight
        if load < least:
            found, least = target, load
    return found


def _prefix(body: bytes, field: bytes) -> bytes:
    at = max(0, body.find(field))
    return body[at : at + PREFIX]


def _by_prefix(targets: Sequence[Target], prefix: bytes) -> Target:
    """Weighted rendezvous hashing with bounded load: the first in the prefix's own order that is not overloaded."""
    weights = sum(t.weight for t in targets)
    asked = sum(t.back_end.outstanding for t in targets) + 1

    def score(target: Target) -> float:
        digest = blake2b(prefix, digest_size=8, key=target.salt).digest()
        return -target.weight / math.log(((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52)  # 0 < share < 1

    for target in sorted(targets, key=score, reverse=True):
        if target.back_end.outstanding + 1 <= math.ceil(LOAD_BOUND * asked * target.weight / weights):
            return target
    return _least(targets)
