"""Keys and plans in the store, on both engines."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from trimtab.errors import UsageError
from trimtab.gateway.keytext import hash_of
from trimtab.gateway.limits import Limits
from trimtab.gateway.store.changes import changes
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.keys import Wish, all_keys, change_key, create_key, one_key, revoke_key, rotate_key
from trimtab.gateway.store.plans import all_plans, put_plan, remove_plan


def test_a_key_is_kept_as_it_was_wished_and_its_text_nowhere(store: Store) -> None:
    wish = Wish(
        "ci", "ops", {"team": "a b", "überall": "ja"}, "coding", Limits(models=("q*",), concurrency=3), expires=9e9
    )
    made = create_key(store, wish)
    assert (made.key.label, made.key.owner, dict(made.key.tags)) == ("ci", "ops", dict(wish.tags))
    assert (made.key.plan, made.key.limits, made.key.expires) == ("coding", wish.limits, 9e9)
    text = made.text.reveal()
    assert repr(made).count(text[9:]) == 0
    with store.reading() as connection:
        for table in sa.inspect(connection).get_table_names():
            rows = connection.execute(sa.text(f"SELECT * FROM {table}")).all()
            assert text[9:] not in repr([tuple(row) for row in rows])
    [change] = changes(store, 0, time.time()).keys
    assert change.texts == {hash_of(text.encode()): None}
    assert (change.limits.concurrency, change.limits.context) == (3, 262_144)


def test_a_key_by_its_id_its_label_or_its_start(store: Store) -> None:
    first = create_key(store, Wish("twice")).key
    second = create_key(store, Wish("twice")).key
    assert one_key(store, first.id) == first
    assert one_key(store, second.texts[0].start) == second
    with pytest.raises(UsageError, match="2 keys are called twice"):
        one_key(store, "twice")
    revoke_key(store, first.id)
    assert one_key(store, "twice") == second
    with pytest.raises(UsageError, match="there is no key nobody"):
        one_key(store, "nobody")
    unnamed = create_key(store, Wish()).key
    with pytest.raises(UsageError, match="no key is named"):  # revoke "$KEY" with the variable not set
        revoke_key(store, "")
    assert [key.id for key in all_keys(store)] == [first.id, second.id, unnamed.id]


def test_a_rotation_keeps_one_former_text_for_its_grace(store: Store) -> None:
    made = create_key(store, Wish("k"))
    again = rotate_key(store, "k", grace_s=60)
    third = rotate_key(store, "k", grace_s=60)
    assert made.key.id == again.key.id == third.key.id
    [change] = changes(store, 0, time.time()).keys
    new, former = hash_of(third.text.reveal().encode()), hash_of(again.text.reveal().encode())
    assert change.texts.keys() == {new, former}
    assert change.texts[new] is None
    end = change.texts[former]
    assert end is not None
    assert 50 < end - time.time() <= 60


def test_a_revoked_key_stays_in_the_books_and_cannot_be_rotated(store: Store) -> None:
    key = create_key(store, Wish("k")).key
    gone = revoke_key(store, key.id)
    assert gone.revoked is not None
    assert revoke_key(store, key.id) == gone
    with pytest.raises(UsageError, match="was revoked or has expired"):
        rotate_key(store, key.id)


def test_a_change_is_seen_by_its_version(store: Store) -> None:
    create_key(store, Wish("other"))
    key = create_key(store, Wish("k", limits=Limits(concurrency=1))).key
    before = changes(store, 0, time.time()).version
    assert changes(store, before, time.time()).keys == ()
    change_key(store, "k", {"limits": Limits(concurrency=2), "plan": "coding", "label": "new", "tags": {"a": "b"}})
    found = changes(store, before, time.time())
    assert [(c.id, c.label, c.limits.concurrency, c.limits.requests_per_minute) for c in found.keys] == [
        (key.id, "new", 2, 120)
    ]


def test_a_changed_plan_changes_its_keys(store: Store) -> None:
    put_plan(store, "small", Limits(concurrency=1, models=("a",)))
    key = create_key(store, Wish("k", plan="small")).key
    create_key(store, Wish("other"))
    before = changes(store, 0, time.time()).version
    put_plan(store, "small", Limits(concurrency=9))
    [change] = changes(store, before, time.time()).keys
    assert (change.id, change.limits) == (key.id, Limits(concurrency=9))
    assert [(plan.name, plan.keys) for plan in all_plans(store)] == [("coding", 0), ("small", 1)]


def test_a_plan_in_use_is_not_removed(store: Store) -> None:
    put_plan(store, "small", Limits(concurrency=1))
    key = create_key(store, Wish("k", plan="small")).key
    with pytest.raises(UsageError, match=f"plan of 1 keys: {key.id}"):
        remove_plan(store, "small")
    change_key(store, "k", {"plan": None})
    remove_plan(store, "small")
    with pytest.raises(UsageError, match="there is no plan small"):
        remove_plan(store, "small")


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish(limits=Limits(concurrency=0)), "concurrency cannot be 0"),
        (Wish(limits=Limits(endpoints=("chats",))), "endpoints cannot be 'chats'"),
        (Wish(limits=Limits(models=("",))), "models cannot be ''"),
        (Wish(limits=Limits(money_per_day=-2.0)), "money_per_day cannot be -2.0"),
        (Wish(plan="none"), "there is no plan none"),
        (Wish(expires=5.0), "expired already"),
        (Wish(expires=1e300), "after the year 9999"),
        (Wish(expires=time.time() * 1000), "after the year 9999"),  # milliseconds
        (Wish(label="a\x1b[31m"), "cannot be a label"),
        (Wish(owner="a\x00"), "cannot be a label"),
        (Wish(tags={"a": "b\n"}), "cannot be a label"),
        (Wish(label="a" * 257), "cannot be a label"),
        (Wish(admin=True, plan="coding"), "an admin key has no limits"),
        (Wish(admin=True, limits=Limits(concurrency=1)), "an admin key has no limits"),
        (Wish(limits=Limits(tokens_per_day=1 << 62)), "tokens_per_day cannot be"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(store: Store, wish: Wish, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        create_key(store, wish)
    assert all_keys(store) == []


def test_a_plan_needs_a_name(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a plan"):
        put_plan(store, "a b", Limits())
