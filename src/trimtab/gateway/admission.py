"""Who may ask for what, and how much: keys and what they use now. Decides in memory; the store is told afterwards."""

from __future__ import annotations

import math
import time
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from trimtab.gateway.keytext import bare, hash_of, key_text, misfit
from trimtab.gateway.limits import ENDPOINTS, Limits
from trimtab.gateway.prompt import BYTES_PER_TOKEN, careful
from trimtab.gateway.request import Refused

__all__ = ["Elsewhere", "Key", "Keys", "Limited", "Share", "Spent", "hash_of", "key_text"]

MINUTE_S = 60
_KNOWN_MODELS = 1024  # answers kept for a key with patterns


class Limited(Refused):
    """A limit was reached; `wait_s` seconds later it may be open again."""

    def __init__(self, message: str, wait_s: float, code: str = "rate_limit_exceeded") -> None:
        super().__init__(429, code, message)
        self.wait_s = max(1, math.ceil(wait_s))


class Share(msgspec.Struct, frozen=True):
    """What one worker counts for a key: in its minute, in the one before, and at this moment."""

    minute: int
    requests: int
    tokens: int
    requests_before: int
    tokens_before: int
    parallel: int
    long: Mapping[str, int]


class Elsewhere(msgspec.Struct, frozen=True):
    """What all other workers count for a key, brought to one minute."""

    requests: int = 0
    tokens: int = 0
    requests_before: int = 0
    tokens_before: int = 0
    parallel: int = 0
    long: Mapping[str, int] = {}


class Spent(msgspec.Struct, frozen=True):
    """What a key used by the store's books: of the day and of the month."""

    day_tokens: int = 0
    month_tokens: int = 0
    day_money: float = 0.0
    month_money: float = 0.0


NOTHING = Elsewhere()


class Key:
    """One key's rights and what it uses now. All calls are made in one thread."""

    __slots__ = (
        "_concurrency", "_context", "_elsewhere", "_known", "_long_limit", "_minute_ends", "_more_parallel",
        "_more_requests", "_more_tokens", "_paths", "_requests_limit", "_tokens_limit", "admin", "changed", "expires",
        "flying_money", "flying_tokens", "fresh_money", "fresh_tokens", "id", "label", "left_money", "left_tokens",
        "limits", "long", "minute", "owner", "parallel", "requests", "requests_before", "revoked", "spent", "tokens",
        "tokens_before",
    )  # fmt: skip

    def __init__(
        self, id: str, label: str = "", limits: Limits | None = None, *, owner: str = "", expires: float | None = None,
        revoked: float | None = None, admin: bool = False,
    ) -> None:  # fmt: skip
        self.id, self.label, self.owner, self.admin = id, label, owner, admin
        self.expires, self.revoked = expires, revoked
        self.minute = self.requests = self.tokens = self.requests_before = self.tokens_before = self.parallel = 0
        self._minute_ends = 0.0
        self.long: dict[str, int] = {}  # long prompts at this moment, by model
        self.changed = False  # whether the other workers know less than is true
        self.spent = Spent()
        self.fresh_tokens = self.flying_tokens = 0  # used, and in no batch yet; in a batch that the store has not
        self.fresh_money = self.flying_money = 0.0
        self._elsewhere = NOTHING
        self._more_parallel = self._more_requests = self._more_tokens = 0  # elsewhere, at most
        self.allow(limits or Limits())

    def allow(self, limits: Limits) -> None:
        """Take other limits; what was counted stays."""
        self.limits = limits
        self._known: dict[str, bool] = {}
        paths = None if limits.endpoints is None else [ENDPOINTS.get(name, frozenset()) for name in limits.endpoints]
        self._paths = None if paths is None else frozenset().union(*paths)
        self._requests_limit = _bound(limits.requests_per_minute)
        self._tokens_limit = _bound(limits.tokens_per_minute)
        self._concurrency = _bound(limits.concurrency)
        self._long_limit = _bound(limits.long_prompts)
        self._context = _bound(limits.context)
        self._weigh()

    def may_use(self, model: str) -> bool:
        """Whether the key's scope holds a model."""
        if self.limits.models is None:
            return True
        known = self._known.get(model)
        if known is None:
            known = any(fnmatchcase(model, pattern) for pattern in self.limits.models)
            if len(self._known) < _KNOWN_MODELS:
                self._known[model] = known
        return known

    def may_ask(self, path: bytes) -> bool:
        """Whether the key's scope holds an endpoint, by its path without /v1."""
        return self._paths is None or path in self._paths

    def enter(self, now: float, model: str, path: bytes, body: bytes, long: bool = False) -> int:
        """Count one request in, at wall-clock `now`; the tokens that are held for it until `leave`.

        Refused 403 outside the scope, 400 above the context; Limited 429 at a limit.
        """
        if self._paths is not None and path not in self._paths:
            raise self._forbidden("endpoint_not_allowed", path.decode("latin-1"), self.limits.endpoints)
        if self.limits.models is not None and not (self._known.get(model) or self.may_use(model)):
            raise self._forbidden("model_not_allowed", f"the model {model}", self.limits.models)
        held = len(body) // BYTES_PER_TOKEN
        if held > self._context:
            held = self._fitting(body)
        if self.parallel + self._more_parallel >= self._concurrency:
            raise Limited(f"this key may have {self._concurrency} requests at once", 1)
        if long and self.long.get(model, 0) + self._elsewhere.long.get(model, 0) >= self._long_limit:
            raise Limited(f"this key may have {self._long_limit} long prompts at once on {model}", 1)
        if now >= self._minute_ends:
            self.turn(int(now) // MINUTE_S)
        # The sums are the most that the sliding minute can hold; only near a limit it is worked out what it does hold.
        if (
            self.requests + self.requests_before + self._more_requests >= self._requests_limit
            or self.tokens + self.tokens_before + self._more_tokens >= self._tokens_limit
        ):
            self._within_rates(now)
        if self.left_tokens <= 0 or self.left_money <= 0:
            self._refuse_by_budget(now)
        self.requests += 1
        self.parallel += 1
        self.tokens += held
        self.changed = True
        if long:
            self.long[model] = self.long.get(model, 0) + 1
        return held

    def leave(self, now: float, model: str, tokens: int, held: int = 0, long: bool = False) -> None:
        """Count one request out, with the tokens it used in place of those held for it."""
        if now >= self._minute_ends:
            self.turn(int(now) // MINUTE_S)
        self.parallel -= 1
        self.tokens += tokens - held
        self.changed = True
        if long:
            left = self.long.get(model, 1) - 1
            if left:
                self.long[model] = left
            else:
                self.long.pop(model, None)

    def spend(self, tokens: int, money: float) -> None:
        """What a request used counts against the budgets."""
        self.fresh_tokens += tokens
        self.fresh_money += money
        self.left_tokens -= tokens
        self.left_money -= money

    def take_off(self, tokens: int, money: float) -> None:
        """So much of what was spent lately goes into a batch."""
        self.fresh_tokens, self.flying_tokens = self.fresh_tokens - tokens, self.flying_tokens + tokens
        self.fresh_money, self.flying_money = self.fresh_money - money, self.flying_money + money

    def land(self) -> None:
        """The store has the batch, and `book` tells what its books say since."""
        self.flying_tokens, self.flying_money = 0, 0.0

    def book(self, spent: Spent) -> None:
        """Take what the store's books say of this key."""
        self.spent = spent
        self._weigh()

    def turn(self, minute: int) -> None:
        """Begin another minute."""
        follows = minute == self.minute + 1
        self.requests_before, self.tokens_before = (self.requests, self.tokens) if follows else (0, 0)
        self.requests = self.tokens = 0
        there = self._elsewhere
        if there is not NOTHING:
            before = (there.requests, there.tokens) if follows else (0, 0)
            self._set_elsewhere(Elsewhere(0, 0, *before, there.parallel, there.long))
        self.minute, self._minute_ends = minute, (minute + 1) * float(MINUTE_S)

    def share(self) -> Share:
        """What the other workers are told."""
        return Share(
            self.minute,
            self.requests,
            self.tokens,
            self.requests_before,
            self.tokens_before,
            self.parallel,
            dict(self.long),
        )

    def everywhere(self) -> tuple[int, int, int]:
        """Requests and tokens of this minute and the one before, and requests at this moment, of all workers."""
        return (
            self.requests + self.requests_before + self._more_requests,
            self.tokens + self.tokens_before + self._more_tokens,
            self.parallel + self._more_parallel,
        )

    def hear(self, minute: int, shares: Iterable[Share]) -> None:
        """Take what the other workers count; `minute` is the present one."""
        if minute != self.minute:
            self.turn(minute)
        self._set_elsewhere(_summed(minute, shares))

    def _set_elsewhere(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self._more_parallel = elsewhere.parallel
        self._more_requests = elsewhere.requests + elsewhere.requests_before
        self._more_tokens = elsewhere.tokens + elsewhere.tokens_before

    def _forbidden(self, code: str, what: str, scope: tuple[str, ...] | None) -> Refused:
        return Refused(403, code, f"this key may not use {what}; it may use {', '.join(scope or ()) or 'nothing'}")

    def _fitting(self, body: bytes) -> int:
        tokens = careful(body)
        if tokens > self._context:
            text = f"the prompt has about {tokens:,} tokens, this key may send {self._context:,}"
            raise Refused(400, "context_length_exceeded", text)
        return tokens

    def _within_rates(self, now: float) -> None:
        """The minute slides: of the one before, the part counts that lies within the last 60 seconds."""
        if now < self.minute * MINUTE_S:  # the clock was set back: what was counted lies in no minute of its own
            self.turn(int(now) // MINUTE_S)
        there, second = self._elsewhere, now - self.minute * MINUTE_S
        rest = 1.0 - second / MINUTE_S
        requests, before = self.requests + there.requests, self.requests_before + there.requests_before
        if requests + before * rest > self._requests_limit - 1:
            wait = _wait(requests, before, self._requests_limit - 1, second)
            raise Limited(f"this key may send {self._requests_limit} requests a minute", wait)
        tokens, before = self.tokens + there.tokens, self.tokens_before + there.tokens_before
        if tokens + before * rest >= self._tokens_limit:
            wait = _wait(tokens, before, self._tokens_limit - 1, second)
            raise Limited(f"this key may use {self._tokens_limit:,} tokens a minute", wait)

    def _budgets(self) -> Iterator[tuple[str, float | None, float]]:
        """Each budget: of a day or a month, how much, and what is left of it."""
        limits, spent = self.limits, self.spent
        tokens, money = self.fresh_tokens + self.flying_tokens, self.fresh_money + self.flying_money
        for of, budget, used in (
            ("tokens a day", limits.tokens_per_day, spent.day_tokens + tokens),
            ("tokens a month", limits.tokens_per_month, spent.month_tokens + tokens),
            ("a day", limits.money_per_day, spent.day_money + money),
            ("a month", limits.money_per_month, spent.month_money + money),
        ):
            yield of, budget, math.inf if budget is None else budget - used

    def _weigh(self) -> None:
        """What is left until the first budget is used up."""
        left = [left for _, _, left in self._budgets()]
        self.left_tokens, self.left_money = min(left[:2]), min(left[2:])

    def _refuse_by_budget(self, now: float) -> None:
        for of, budget, left in self._budgets():
            if left <= 0:
                text = f"the budget of this key is used up: {budget:,} {of}"
                raise Limited(text, _until_next(of, now), "insufficient_quota")


class Keys:
    """The keys by the hash of their texts, which may be two while one takes the other's place."""

    def __init__(self, keys: Iterable[tuple[bytes, Key]] = ()) -> None:
        self._keys: dict[bytes, Key] = {}
        self._ends: dict[bytes, float] = {}  # of texts that were replaced, and hold a while longer
        self.by_id: dict[str, Key] = {}
        for digest, key in keys:
            self.put(key, {digest: None})

    def put(self, key: Key, digests: Mapping[bytes, float | None]) -> None:
        """Add a key or change its texts: each hash with the time at which it ends to hold."""
        for digest in [digest for digest, known in self._keys.items() if known is key and digest not in digests]:
            self._keys.pop(digest)
            self._ends.pop(digest, None)
        for digest, end in digests.items():
            self._keys[digest] = key
            if end is not None:
                self._ends[digest] = end
        self.by_id[key.id] = key

    def find(self, text: bytes) -> Key:
        """The key of a request's header value. Refused 401, naming what came along with a good key."""
        found = self._known(text)
        if found.admin:
            raise Refused(403, "key_of_admin", "this is an admin key: it opens /admin and no model")
        return found

    def by_digest(self, digest: bytes) -> Key | None:
        """The same by the hash of its text; None where `find` has to look closer or to say why not."""
        found = self._keys.get(digest)
        if found is None or found.admin or self._ends or found.revoked is not None or found.expires is not None:
            return None
        return found

    def find_admin(self, text: bytes) -> Key:
        """The same for the admin API, which takes admin keys alone. Refused 401 or 403."""
        found = self._known(text)
        if not found.admin:
            raise Refused(403, "key_not_of_admin", "this key opens models, not /admin: that takes an admin key")
        return found

    def _known(self, text: bytes) -> Key:
        digest = hash_of(text)
        found = self._keys.get(digest)
        if found is None:
            raise self._refusal(text)
        if found.revoked is not None:
            raise Refused(401, "key_revoked", f"the key {found.label or found.id} was revoked")
        if found.expires is not None and time.time() >= found.expires:
            raise Refused(401, "key_expired", f"the key {found.label or found.id} has expired")
        if self._ends and self._ends.get(digest, math.inf) <= time.time():
            text_of = f"the key {found.label or found.id} was rotated and its former text no longer holds"
            raise Refused(401, "key_rotated", text_of)
        return found

    def _refusal(self, text: bytes) -> Refused:
        if not text:
            return Refused(401, "key_missing", "no key was sent: Authorization: Bearer KEY, or x-api-key: KEY")
        if not self._keys:
            return Refused(401, "key_wrong", "this gateway has no key yet: trimtab keys create makes one")
        inner, along = bare(text)
        if along and hash_of(inner) in self._keys:
            return Refused(401, "key_with_blanks", f"the key is right but came with {' and '.join(along)}")
        why = misfit(inner)
        return Refused(401, "key_wrong", f"no such key: {why}" if why else "no such key")


def _bound(limit: int | None) -> float:
    return math.inf if limit is None else limit


def _wait(now: float, before: float, most: float, second: float) -> float:
    """Seconds until no more than `most` lie within the last 60, if nothing else comes."""
    if now <= most and before > 0:
        return MINUTE_S * (1 - (most - now) / before) - second
    return MINUTE_S - second + (MINUTE_S * (1 - most / now) if now > most else 0.0)


def _until_next(of: str, now: float) -> float:
    gone = time.gmtime(now)
    day = 86400 - (gone.tm_hour * 60 + gone.tm_min) * 60 - gone.tm_sec
    if of.endswith("day"):
        return day
    return day + 86400 * (monthrange(gone.tm_year, gone.tm_mon)[1] - gone.tm_mday)


def _summed(minute: int, shares: Iterable[Share]) -> Elsewhere:
    requests = tokens = requests_before = tokens_before = parallel = 0
    long: dict[str, int] = {}
    for share in shares:
        parallel += share.parallel
        for model, count in share.long.items():
            long[model] = long.get(model, 0) + count
        if share.minute == minute:
            requests, tokens = requests + share.requests, tokens + share.tokens
            requests_before += share.requests_before
            tokens_before += share.tokens_before
        elif share.minute == minute - 1:
            requests_before += share.requests
            tokens_before += share.tokens
    return Elsewhere(requests, tokens, requests_before, tokens_before, parallel, long)
