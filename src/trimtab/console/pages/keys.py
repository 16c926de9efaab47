"""Keys: those there are, a form for a new one, and the only time that a key's text is seen."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.console.asked import Asked, House, Shown
from trimtab.errors import TrimtabError
from trimtab.gateway.limits import ENDPOINTS, NUMBERS, Limits
from trimtab.gateway.store.audit import add_entry
from trimtab.gateway.store.keys import GRACE_S, KeyRecord, Made, Wish, all_keys, create_key, revoke_key, rotate_key
from trimtab.gateway.store.plans import all_plans
from trimtab.messages import Message, msg

LONGEST = 200  # characters of a label or owner
MOST_DAYS = 3650.0
DAY_S = 86400.0
_TYPED = ("label", "owner", "plan", "models", "expires_days", *NUMBERS)


class NewText(msgspec.Struct, frozen=True):
    """A key's text, shown this once, with where a client asks."""

    key: KeyRecord
    text: str
    url: str
    model: str  # the first that it may use, for the examples


class KeysPage(msgspec.Struct, frozen=True):
    """The page. `faults` name a form's fields, `typed` is what was typed into it, so that nothing is lost."""

    keys: tuple[KeyRecord, ...]
    ended: int  # keys that were revoked or have expired; in `keys` when `all` was asked for
    plans: tuple[str, ...]
    models: tuple[str, ...]
    endpoints: tuple[str, ...]
    numbers: tuple[str, ...]
    typed: Mapping[str, str] = {}
    typed_endpoints: tuple[str, ...] = ()
    faults: Mapping[str, str] = {}
    fault: str = ""
    made: NewText | None = None


class _Wrong(Exception):
    """What is wrong with a form, by its fields."""

    def __init__(self, faults: Mapping[str, Message]) -> None:
        super().__init__()
        self.faults = faults


def show(house: House, asked: Asked) -> KeysPage:
    """The page before anything was sent."""
    keys = all_keys(house.store)
    held = [key for key in keys if key.holds(asked.now)]
    shown = keys if asked.query.get("all") else held
    return KeysPage(
        tuple(reversed(shown)), len(keys) - len(held), tuple(plan.name for plan in all_plans(house.store)),
        tuple(house.routes.names), tuple(ENDPOINTS), NUMBERS,
    )  # fmt: skip


def act(house: House, asked: Asked) -> Shown:
    """Create, rotate or revoke, and write it down."""
    try:
        match asked.field("action"):
            case "create":
                return _shown(house, asked, create_key(house.store, _wish(asked)), "key.create")
            case "rotate":
                grace_s = 0.0 if asked.field("at_once") else GRACE_S
                return _shown(house, asked, rotate_key(house.store, asked.field("id"), grace_s), "key.rotate")
            case "revoke":
                key = revoke_key(house.store, asked.field("id"))
                add_entry(house.store, asked.who, "key.revoke", key.id)
                return Shown(show(house, asked))
        return _faulty(house, asked, {}, msg("The form asks for nothing that is known here."), 400)
    except _Wrong as wrong:
        return _faulty(house, asked, wrong.faults, msg("Nothing was made: mend what is marked."), 400)
    except TrimtabError as error:
        return _faulty(house, asked, {}, error.message, 409 if error.http_status == 400 else error.http_status)


def _shown(house: House, asked: Asked, made: Made, what: str) -> Shown:
    add_entry(house.store, asked.who, what, f"{made.key.id} {made.key.label}".strip())
    models = made.key.limits.models
    usable = [name for name in house.routes.names if models is None or name in models]
    text = NewText(made.key, made.text.reveal(), house.url, usable[0] if usable else "MODEL")
    return Shown(msgspec.structs.replace(show(house, asked), made=text), 201)


def _faulty(house: House, asked: Asked, faults: Mapping[str, Message], fault: Message, status: int) -> Shown:
    page = msgspec.structs.replace(
        show(house, asked), typed={name: asked.field(name) for name in _TYPED} | {"admin": asked.field("admin")},
        typed_endpoints=asked.form.get("endpoints", ()), fault=fault.text(asked.lang),
        faults={name: message.text(asked.lang) for name, message in faults.items()},
    )  # fmt: skip
    return Shown(page, status)


def _wish(asked: Asked) -> Wish:
    """The form as a wish. _Wrong naming each field that is not as it should be."""
    faults: dict[str, Message] = {}
    for name in ("label", "owner"):
        if len(asked.field(name)) > LONGEST:
            faults[name] = msg("At most {n} characters.", n=LONGEST)
    numbers = {name: _number(name, asked.field(name), faults) for name in NUMBERS}
    models = tuple(part.strip() for part in asked.field("models").split(",") if part.strip()) or None
    endpoints = asked.form.get("endpoints") or None
    if any(name not in ENDPOINTS for name in endpoints or ()):
        faults["endpoints"] = msg("There is no such endpoint.")
    days = asked.field("expires_days")
    expires = asked.now + _days(days, faults) * DAY_S if days else None
    if faults:
        raise _Wrong(faults)
    limits = Limits(models=models, endpoints=endpoints, **numbers)  # type: ignore[arg-type]
    plan, admin = asked.field("plan") or None, bool(asked.field("admin"))
    return Wish(asked.field("label"), asked.field("owner"), {}, plan, limits, admin, expires)


def _number(name: str, text: str, faults: dict[str, Message]) -> int | float | None:
    """A limit; an empty field is none."""
    money = name.startswith("money")
    plain = text.replace(",", "").replace("_", "").replace(" ", "")
    if not plain:
        return None
    whole = plain.isascii() and plain.isdigit() and len(plain) < 19
    part, dot, rest = plain.partition(".")
    if money and dot and (part + rest).isascii() and (part + rest).isdigit() and len(plain) < 19:
        return float(plain)
    if not whole or (int(plain) < 1 and not money):
        faults[name] = msg("Give an amount, such as 2.50.") if money else msg("Give a whole number of 1 or more.")
        return None
    return float(plain) if money else int(plain)


def _days(text: str, faults: dict[str, Message]) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days <= MOST_DAYS:
        faults["expires_days"] = msg("Give a number of days above 0, at most {n:g}.", n=MOST_DAYS)
    return days
