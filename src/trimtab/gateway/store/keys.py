"""Keys in the store: made, listed, changed, rotated, revoked. A key's text leaves this module once, when it is made."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import sqlalchemy as sa
from msgspec import Meta

from trimtab.errors import UsageError
from trimtab.gateway.keytext import hash_of, minted, start_of
from trimtab.gateway.limits import Limits
from trimtab.gateway.secret import Secret
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store, Writing
from trimtab.gateway.store.plans import one_plan, require_sense
from trimtab.messages import msg

GRACE_S = 24 * 3600.0  # that the former text holds after a rotation, unless another time is asked for
LAST_S = 253402300799.0  # the end of the year 9999: calendars go no further, and milliseconds lie behind it
Moment = Annotated[float, Meta(ge=0, le=LAST_S)]
Line = Annotated[str, Meta(max_length=256, pattern=r"^[^\u0000-\u001f\u007f]*$")]  # what a table can show
_limits = msgspec.json.Decoder(Limits)
_tags = msgspec.json.Decoder(dict[str, str])


class Text(msgspec.Struct, frozen=True):
    """One of a key's texts, by its first characters; `ends` where another took its place."""

    start: str
    created: float
    ends: float | None


class KeyRecord(msgspec.Struct, frozen=True):
    """A key as the store holds it. `limits` are its own, beside those of its plan."""

    id: str
    label: str
    owner: str
    tags: Mapping[str, str]
    plan: str | None
    limits: Limits
    admin: bool
    created: float
    expires: float | None
    revoked: float | None
    texts: tuple[Text, ...]

    def holds(self, now: float) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class Made(msgspec.Struct, frozen=True):
    """A new key or a new text of one: the only time that the text is seen."""

    key: KeyRecord
    text: Secret


class Wish(msgspec.Struct, frozen=True):
    """What a key is to be."""

    label: Line = ""
    owner: Line = ""
    tags: Mapping[Line, Line] = {}
    plan: str | None = None
    limits: Limits = Limits()
    admin: bool = False
    expires: Moment | None = None


def create_key(store: Store, wish: Wish) -> Made:
    """Make a key. UsageError for what makes no sense: limits, an unknown plan, an end that is over, a text of lines."""
    _require(store, msgspec.structs.asdict(wish), admin=wish.admin)
    now, id = time.time(), "k" + secrets.token_hex(6)
    text = minted(admin=wish.admin)
    with store.writing() as to:
        row = {
            "id": id, "label": wish.label, "owner": wish.owner, "tags": msgspec.json.encode(dict(wish.tags)).decode(),
            "plan": wish.plan, "limits": msgspec.json.encode(wish.limits).decode(), "admin": wish.admin, "created": now,
            "expires": wish.expires, "revoked": None, "version": to.version,
        }  # fmt: skip
        to.connection.execute(sa.insert(tables.keys), row)
        _add_text(to, id, text, now)
    return Made(one_key(store, id), Secret(text))


def all_keys(store: Store) -> list[KeyRecord]:
    """Every key, oldest first, revoked and expired ones too."""
    with store.reading() as connection:
        texts: dict[str, list[Text]] = {}
        for row in connection.execute(sa.select(tables.texts).order_by(tables.texts.c.created)):
            texts.setdefault(row.key_id, []).append(Text(row.start, row.created, row.ends))
        rows = connection.execute(sa.select(tables.keys).order_by(tables.keys.c.created, tables.keys.c.id))
        return [_record(row, texts.get(row.id, ())) for row in rows]


def one_key(store: Store, named: str) -> KeyRecord:
    """The key of an id, of a label that one key alone has, or of its first characters; else UsageError."""
    if not named.strip():  # most often a variable that is not set; a key without a label is not meant
        raise UsageError(msg("no key is named"), hint=msg("See which there are: trimtab keys list --all."))
    known = all_keys(store)
    found = [key for key in known if key.id == named]
    found = found or [key for key in known if key.label == named and key.revoked is None]
    found = found or [key for key in known if any(text.start == named for text in key.texts)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            msg("there is no key {name}", name=named[:12]), hint=msg("See which there are: trimtab keys list --all.")
        )
    raise UsageError(
        msg("{count} keys are called {name}: {ids}", count=len(found), name=named, ids=", ".join(k.id for k in found)),
        hint=msg("Name one by its id."),
    )


def change_key(store: Store, named: str, changes: Mapping[str, Any]) -> KeyRecord:
    """Change fields of a Wish but `admin`; gateways follow within a second. UsageError as for `create_key`."""
    key = one_key(store, named)
    _require(store, changes, admin=key.admin)
    values = dict(changes)
    for field in {"limits", "tags"} & values.keys():
        values[field] = msgspec.json.encode(values[field]).decode()
    with store.writing() as to:
        chosen = sa.update(tables.keys).where(tables.keys.c.id == key.id)
        to.connection.execute(chosen.values(**values, version=to.version))
    return one_key(store, key.id)


def rotate_key(store: Store, named: str, grace_s: float = GRACE_S) -> Made:
    """Give a key another text; the former one holds for `grace_s` more seconds, ones before that end at once."""
    key = one_key(store, named)
    now = time.time()
    if not key.holds(now):
        raise UsageError(
            msg("the key {name} was revoked or has expired", name=key.label or key.id),
            hint=msg("Make a new one: trimtab keys create."),
        )
    text, texts = minted(admin=key.admin), tables.texts
    with store.writing() as to:
        to.connection.execute(sa.delete(texts).where(texts.c.key_id == key.id, texts.c.ends.is_not(None)))
        to.connection.execute(sa.update(texts).where(texts.c.key_id == key.id).values(ends=now + grace_s))
        _add_text(to, key.id, text, now)
        to.connection.execute(sa.update(tables.keys).where(tables.keys.c.id == key.id).values(version=to.version))
    return Made(one_key(store, key.id), Secret(text))


def revoke_key(store: Store, named: str) -> KeyRecord:
    """End a key for good; requests that run are answered to their end. Its usage stays."""
    key = one_key(store, named)
    if key.revoked is None:
        with store.writing() as to:
            chosen = sa.update(tables.keys).where(tables.keys.c.id == key.id)
            to.connection.execute(chosen.values(revoked=time.time(), version=to.version))
    return one_key(store, key.id)


def _require(store: Store, fields: Mapping[str, Any], *, admin: bool) -> None:
    """UsageError for the first of a key's fields that makes no sense."""
    tags = fields.get("tags", {})
    for text in (fields.get("label", ""), fields.get("owner", ""), *tags, *tags.values()):
        _require_line(text)
    plan, limits, expires = fields.get("plan"), fields.get("limits", Limits()), fields.get("expires")
    require_sense(limits)
    if admin and (plan is not None or limits != Limits()):
        raise UsageError(
            msg("an admin key has no limits and no plan: it opens no model"),
            hint=msg("Make another key for models, without --admin."),
        )
    if plan is not None:
        one_plan(store, plan)
    if expires is not None and expires <= time.time():
        raise UsageError(msg("the key would have expired already"), hint=msg("Give a time to come, e.g. 30d."))
    if expires is not None and expires > LAST_S:
        raise UsageError(
            msg("the key would end after the year 9999"),
            hint=msg("Give a nearer time, e.g. 30d; never is its default."),
        )


def _require_line(text: str) -> None:
    if len(text) > 256 or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise UsageError(
            msg("{text} cannot be a label, an owner or a tag", text=repr(text[:40])),
            hint=msg("Give one line of up to 256 characters."),
        )


def _add_text(to: Writing, id: str, text: str, now: float) -> None:
    row = {"hash": hash_of(text.encode()), "key_id": id, "start": start_of(text), "created": now, "ends": None}
    to.connection.execute(sa.insert(tables.texts), row)


def _record(row: sa.Row[Any], texts: Sequence[Text]) -> KeyRecord:
    return KeyRecord(
        row.id, row.label, row.owner, _tags.decode(row.tags), row.plan, _limits.decode(row.limits), row.admin,
        row.created, row.expires, row.revoked, tuple(texts),
    )  # fmt: skip
