"""The admin API's endpoints: each a record of what it takes and gives, and a function; openapi.py reads them too."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trimtab.errors import UsageError
from trimtab.gateway.limits import Limits
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.keys import (
    GRACE_S,
    KeyRecord,
    Line,
    Moment,
    Wish,
    all_keys,
    change_key,
    create_key,
    revoke_key,
    rotate_key,
)
from trimtab.gateway.store.plans import Plan, all_plans, put_plan, remove_plan
from trimtab.gateway.store.reports import BY, Used, used
from trimtab.messages import msg


class NotFound(UsageError):
    """The path names something that is not there."""

    http_status = 404


class NewKey(Wish, frozen=True, forbid_unknown_fields=True):
    """What a key is to be. `expires`: seconds since 1970."""


class KeyChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that are left out stay as they are; null takes a plan, an end or a limit away."""

    label: Line | UnsetType = UNSET
    owner: Line | UnsetType = UNSET
    tags: Mapping[Line, Line] | UnsetType = UNSET
    plan: str | UnsetType | None = UNSET
    limits: Limits | UnsetType = UNSET
    expires: Moment | UnsetType | None = UNSET


class Grace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the former text still holds."""

    grace_s: Annotated[float, Meta(ge=0, le=366 * 86400)] = GRACE_S


class MadeKey(msgspec.Struct, frozen=True):
    """A key with its text, which is shown this once."""

    key: KeyRecord
    text: str


class Keys(msgspec.Struct, frozen=True):
    """All of them, oldest first."""

    keys: list[KeyRecord]


class Plans(msgspec.Struct, frozen=True):
    """All of them, by name."""

    plans: list[Plan]


class BackEndState(msgspec.Struct, frozen=True):
    """A back end as the worker that answers sees it."""

    name: str
    kind: str
    url: str
    ready: bool
    healthy: bool  # by the active checks
    failures: int  # in a row
    left_alone_s: float  # for so much longer, after too many failures
    outstanding: int
    models: list[str]


class BackEnds(msgspec.Struct, frozen=True):
    """All of them."""

    back_ends: list[BackEndState]


class Usage(msgspec.Struct, frozen=True):
    """Sums, one for each group."""

    usage: list[Used]


class Reloaded(msgspec.Struct, frozen=True):
    """What is served now, or will be once every worker has read the file."""

    models: list[str]


class Fault(msgspec.Struct, frozen=True):
    """What was wrong, and the next step."""

    code: str
    message: str
    hint: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: Fault


class Asked(msgspec.Struct, frozen=True):
    """One call: what the path names, the query, the decoded body."""

    name: str = ""
    query: Mapping[str, str] = {}
    body: Any = None


class Process(msgspec.Struct, frozen=True):
    """What the gateway's own process tells and does; called in its loop's thread."""

    back_ends: Callable[[], BackEnds]
    reload: Callable[[], Awaitable[Reloaded]]


class Endpoint(msgspec.Struct, frozen=True):
    """One method of one path. `answer` gets the store, in the store's thread; without one it is the process's own."""

    method: str
    path: str
    about: str
    gives: type | None
    answer: Callable[[Store, Asked], object] | None = None
    takes: type | None = None
    status: int = 200
    query: Mapping[str, tuple[dict[str, Any], str]] = {}  # name -> schema and what it is


def _require_key(store: Store, id: str) -> KeyRecord:
    for key in all_keys(store):
        if key.id == id:
            return key
    raise NotFound(msg("there is no key {name}", name=id[:12]), hint=msg("GET /admin/keys lists them."))


def _keys(store: Store, asked: Asked) -> Keys:
    return Keys(all_keys(store))


def _create(store: Store, asked: Asked) -> MadeKey:
    made = create_key(store, asked.body)
    return MadeKey(made.key, made.text.reveal())


def _key(store: Store, asked: Asked) -> KeyRecord:
    return _require_key(store, asked.name)


def _change(store: Store, asked: Asked) -> KeyRecord:
    key = _require_key(store, asked.name)
    named = {name: getattr(asked.body, name) for name in KeyChange.__struct_fields__}
    changes = {name: value for name, value in named.items() if value is not UNSET}
    return change_key(store, key.id, changes) if changes else key


def _rotate(store: Store, asked: Asked) -> MadeKey:
    key = _require_key(store, asked.name)
    made = rotate_key(store, key.id, asked.body.grace_s)
    return MadeKey(made.key, made.text.reveal())


def _revoke(store: Store, asked: Asked) -> KeyRecord:
    return revoke_key(store, _require_key(store, asked.name).id)


def _plans(store: Store, asked: Asked) -> Plans:
    return Plans(all_plans(store))


def _plan(store: Store, asked: Asked) -> Plan:
    for plan in all_plans(store):
        if plan.name == asked.name:
            return plan
    raise NotFound(msg("there is no plan {name}", name=asked.name[:64]), hint=msg("GET /admin/plans lists them."))


def _put_plan(store: Store, asked: Asked) -> Plan:
    return put_plan(store, asked.name, asked.body)


def _remove_plan(store: Store, asked: Asked) -> None:
    remove_plan(store, _plan(store, asked).name)


_TIME: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1e12}
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_USAGE = {
    "by": (
        {"type": "string", "pattern": f"^({'|'.join(BY)})(,({'|'.join(BY)}))*$"},
        f"Names with commas: {', '.join(BY)}. Without it the sum over all.",
    ),
    "since": (_TIME, "Seconds since 1970, taken down to the minute."),
    "until": (_TIME, "Seconds since 1970; up to it, without it."),
    "key": ({"type": "string", "pattern": f"^{_ID.pattern}$"}, "The id of one key."),
}


def _usage(store: Store, asked: Asked) -> Usage:
    text = asked.query.get("by")
    by = text.split(",") if text is not None else []
    for name in by:
        if name not in BY:
            raise ValueError(f"by: {name!r} is none of {', '.join(BY)}")
    since, until = _seconds(asked, "since"), _seconds(asked, "until")
    key = asked.query.get("key")
    if key is not None and not _ID.fullmatch(key):
        raise ValueError(f"key: {key!r} is no key's id")
    return Usage(used(store, list(dict.fromkeys(by)), since or 0.0, math.inf if until is None else until, key))


def _seconds(asked: Asked, name: str) -> float | None:
    text = asked.query.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _TIME["maximum"]:
        raise ValueError(f"{name}: {text!r} is no number of seconds since 1970")
    return value


ENDPOINTS = (
    Endpoint("GET", "/admin/keys", "Every key, revoked and expired ones too.", Keys, _keys),
    Endpoint("POST", "/admin/keys", "Make a key; its text is shown this once.", MadeKey, _create, NewKey, 201),
    Endpoint("GET", "/admin/keys/{name}", "One key, by its id.", KeyRecord, _key),
    Endpoint("PATCH", "/admin/keys/{name}", "Change a key; gateways follow within a second.", KeyRecord, _change,
             KeyChange),
    Endpoint("POST", "/admin/keys/{name}/rotate", "Give a key another text.", MadeKey, _rotate,
             Grace),
    Endpoint("DELETE", "/admin/keys/{name}", "Revoke a key for good; its usage stays.", KeyRecord, _revoke),
    Endpoint("GET", "/admin/plans", "Every plan.", Plans, _plans),
    Endpoint("GET", "/admin/plans/{name}", "One plan.", Plan, _plan),
    Endpoint("PUT", "/admin/plans/{name}", "Make or change a plan; its keys follow within a second.", Plan, _put_plan,
             Limits),
    Endpoint("DELETE", "/admin/plans/{name}", "Remove a plan that no key has.", None, _remove_plan, status=204),
    Endpoint("GET", "/admin/usage", "What was used, added up.", Usage, _usage, query=_USAGE),
    Endpoint("GET", "/admin/back-ends", "How the back ends are, as the answering worker sees it.", BackEnds),
    Endpoint("POST", "/admin/reload", "Read the configuration again, in every worker.", Reloaded),
)  # fmt: skip
