"""Limits in memory: what is let in, what is refused with which status, and how long a refused client is to wait."""

from __future__ import annotations

import base64
import time

import msgspec
import pytest

from trimtab.gateway.admission import Key, Keys, Limited, Share, Spent
from trimtab.gateway.keytext import hash_of, key_text, minted, start_of
from trimtab.gateway.limits import PRESETS, Limits, faults, merged
from trimtab.gateway.request import Refused

NOON = 1_800_000_000.0 // 86400 * 86400 + 43200  # a full minute
CHAT = b"/chat/completions"


def enter(
    key: Key, now: float = NOON, model: str = "m", path: bytes = CHAT, body: bytes = b"", long: bool = False
) -> int:
    return key.enter(now, model, path, body, long)


def leave(key: Key, now: float = NOON, tokens: int = 0, held: int = 0, long: bool = False) -> None:
    key.leave(now, "m", tokens, held, long)


def test_a_key_without_limits_lets_all_in() -> None:
    key = Key("k")
    for _ in range(1000):
        enter(key)
    assert key.parallel == 1000


def test_requests_at_once() -> None:
    key = Key("k", limits=Limits(concurrency=2))
    enter(key), enter(key)
    with pytest.raises(Limited, match="2 requests at once") as limited:
        enter(key)
    assert (limited.value.status, limited.value.code, limited.value.wait_s) == (429, "rate_limit_exceeded", 1)
    leave(key)
    enter(key)


def test_requests_a_minute_slide() -> None:
    key = Key("k", limits=Limits(requests_per_minute=10))
    for _ in range(10):
        enter(key, NOON + 50), leave(key, NOON + 50)
    with pytest.raises(Limited, match="10 requests a minute") as limited:
        enter(key, NOON + 55)
    with pytest.raises(Limited):
        enter(key, NOON + 60)  # another minute has begun, yet ten were sent within the last 60 s
    wait = limited.value.wait_s
    with pytest.raises(Limited):
        enter(key, NOON + 55 + wait - 2)
    enter(key, NOON + 55 + wait)


def test_a_clock_that_is_set_back_or_forward_locks_nobody_out() -> None:
    key = Key("k", limits=Limits(requests_per_minute=10))
    for step in (0, -7200, 7200, -30 * 86400):
        for _ in range(10):
            enter(key, NOON + step)
        with pytest.raises(Limited) as limited:
            enter(key, NOON + step)
        assert limited.value.wait_s is not None
        assert limited.value.wait_s <= 120


def test_a_minute_later_all_is_open_again() -> None:
    key = Key("k", limits=Limits(requests_per_minute=10))
    for _ in range(10):
        enter(key, NOON)
    for _ in range(10):
        enter(key, NOON + 120)


def test_tokens_are_held_for_the_prompt_until_the_request_ends() -> None:
    key = Key("k", limits=Limits(tokens_per_minute=1000))
    held = enter(key, body=b"x" * 4000)
    assert held == 1000
    with pytest.raises(Limited, match="1,000 tokens a minute"):
        enter(key)
    leave(key, tokens=300, held=held)
    enter(key)


def test_the_wait_for_tokens_is_long_enough_and_no_longer() -> None:
    key = Key("k", limits=Limits(tokens_per_minute=1000))
    enter(key, NOON + 30), leave(key, NOON + 30, tokens=4000)
    with pytest.raises(Limited) as limited:
        enter(key, NOON + 30)
    enter(key, NOON + 30 + limited.value.wait_s)
    leave(key, NOON + 30)
    assert 60 < limited.value.wait_s <= 76  # a quarter of the 4,000 lie within the last minute 45 s into the next


def test_long_prompts_are_counted_for_each_model() -> None:
    key = Key("k", limits=Limits(long_prompts=1))
    enter(key, long=True)
    enter(key)
    enter(key, model="other", long=True)
    with pytest.raises(Limited, match="1 long prompts at once on m"):
        enter(key, long=True)
    leave(key, long=True)
    enter(key, long=True)


def test_models_by_pattern_and_endpoints_by_name() -> None:
    key = Key("k", limits=Limits(models=("qwen*", "gpt-oss-20b"), endpoints=("chat", "messages")))
    enter(key, model="qwen3-30b"), enter(key, model="gpt-oss-20b", path=b"/messages")
    with pytest.raises(Refused, match=r"may not use the model gpt-oss-120b; it may use qwen\*, gpt-oss-20b") as refused:
        enter(key, model="gpt-oss-120b")
    assert (refused.value.status, refused.value.code) == (403, "model_not_allowed")
    with pytest.raises(Refused, match="may not use /embeddings; it may use chat, messages") as refused:
        enter(key, model="qwen3-30b", path=b"/embeddings")
    assert (refused.value.status, refused.value.code) == (403, "endpoint_not_allowed")
    assert key.parallel == 2


def test_context_is_estimated_from_texts_and_not_from_images() -> None:
    key = Key("k", limits=Limits(context=1000))
    image = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(bytes(90_000)).decode()},
    }
    body = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": [image]}]})
    assert enter(key, body=body) < 50
    text = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "word " * 900}]})
    with pytest.raises(Refused, match=r"about 1,1\d\d tokens, this key may send 1,000") as refused:
        enter(key, body=text)
    assert (refused.value.status, refused.value.code) == (400, "context_length_exceeded")


def test_budgets_of_a_day_and_a_month() -> None:
    key = Key("k", limits=Limits(tokens_per_day=100, tokens_per_month=1000))
    enter(key)
    key.spend(99, 0.0)
    enter(key)
    key.spend(1, 0.0)
    with pytest.raises(Limited, match="used up: 100 tokens a day") as limited:
        enter(key)
    assert (limited.value.code, limited.value.wait_s) == ("insufficient_quota", 43200)
    key.take_off(100, 0.0)
    key.land()
    key.book(Spent(day_tokens=0, month_tokens=1000))
    with pytest.raises(Limited, match="1,000 tokens a month") as limited:
        enter(key)
    assert limited.value.wait_s > 43200


def test_a_budget_in_money() -> None:
    key = Key("k", limits=Limits(money_per_day=1.5))
    key.spend(10**9, 1.4)
    enter(key)
    key.spend(0, 0.2)
    with pytest.raises(Limited, match=r"used up: 1.5 a day"):
        enter(key)


def test_what_is_in_no_batch_yet_counts_beside_the_books() -> None:
    key = Key("k", limits=Limits(tokens_per_day=100))
    key.spend(40, 0.0)
    key.take_off(40, 0.0)
    key.spend(10, 0.0)
    assert key.left_tokens == 50
    key.land()
    key.book(Spent(day_tokens=60))  # 40 of here, 20 of another gateway
    assert key.left_tokens == 30


def test_what_others_count_is_added() -> None:
    key = Key("k", limits=Limits(requests_per_minute=10, concurrency=5))
    minute = int(NOON) // 60
    key.hear(minute, [Share(minute, 4, 0, 0, 0, 2, {}), Share(minute - 1, 6, 0, 99, 0, 2, {})])
    enter(key, NOON + 59)
    with pytest.raises(Limited, match="at once"):
        enter(key, NOON + 59)
    key.hear(minute, [Share(minute, 9, 0, 0, 0, 0, {})])
    with pytest.raises(Limited, match="a minute"):
        enter(key, NOON + 59)
    key.hear(minute, [])
    enter(key, NOON + 59)


def test_a_plan_gives_what_the_key_does_not_state() -> None:
    limits = merged(Limits(concurrency=2), PRESETS["coding"])
    assert limits.concurrency == 2
    assert limits.context == PRESETS["coding"].context
    assert merged(Limits(concurrency=2), None) == Limits(concurrency=2)


def test_limits_that_make_no_sense_are_named() -> None:
    assert faults(PRESETS["coding"]) == []
    wrong = Limits(endpoints=("chat", "chats"), models=(" ",), concurrency=0, context=1 << 70, money_per_day=-1.0)
    assert [name for name, _ in faults(wrong)] == ["endpoints", "models", "concurrency", "context", "money_per_day"]


# keys


@pytest.fixture
def text() -> str:
    return minted()


def test_a_key_is_256_random_bits(text: str) -> None:
    assert text.startswith("tt-")
    assert len(base64.urlsafe_b64decode(text[3:] + "=")) == 32
    assert minted(admin=True).startswith("tt-admin-")
    assert start_of(text) == text[:9]


@pytest.mark.parametrize(
    ("wrap", "named"),
    [
        (" {} ", "blanks"),
        ('"{}"', "quotes"),
        ("'{}'", "quotes"),
        ("{}\\n", "blanks"),
        ("{}\n", "blanks"),
        ("Bearer {}", "a word before it"),
        ('"Bearer {}"', "quotes and a word before it"),
        ("{},", "a mark"),
        ("<{}>", "a mark"),
        ("\xa0{}", "blanks"),
        ("api_key", None),
    ],
)
def test_what_came_along_with_a_key_is_named(text: str, wrap: str, named: str | None) -> None:
    keys = Keys([(hash_of(text.encode()), Key("k"))])
    sent = wrap.format(text).encode("latin-1")
    with pytest.raises(Refused) as refused:
        keys.find(sent)
    assert refused.value.status == 401
    assert text not in refused.value.message
    if named is not None:
        assert refused.value.code == "key_with_blanks"
        assert named in refused.value.message


def test_why_it_is_no_key(text: str) -> None:
    keys = Keys([(hash_of(text.encode()), Key("k"))])
    for sent, why in (
        (text[:-3], "it has 43 characters, a whole key has 46"),
        ("sk-1234", "begin with tt-"),
        ("", "no key was"),
    ):
        with pytest.raises(Refused, match=why):
            keys.find(sent.encode())
    with pytest.raises(Refused, match=r"^no such key$"):
        keys.find(minted().encode())
    with pytest.raises(Refused, match="no key yet"):
        Keys().find(text.encode())


def test_a_key_in_either_header(text: str) -> None:
    assert key_text({b"authorization": b"Bearer " + text.encode()}) == text.encode()
    assert key_text({b"authorization": b"bearer x", b"x-api-key": b"y"}) == b"x"
    assert key_text({b"x-api-key": b"y"}) == b"y"
    for empty in (b"", b"Bearer"):
        assert key_text({b"authorization": empty, b"x-api-key": b"y"}) == b"y"
    assert key_text({}) == b""


def test_expired_revoked_and_admin_keys() -> None:
    keys = Keys(
        [
            (hash_of(b"old"), Key("1", "alice", expires=time.time() - 1)),
            (hash_of(b"gone"), Key("2", revoked=5.0)),
            (hash_of(b"admin"), Key("3", admin=True)),
            (hash_of(b"good"), Key("4", expires=time.time() + 100)),
        ]
    )
    for sent, code, status in (
        (b"old", "key_expired", 401),
        (b"gone", "key_revoked", 401),
        (b"admin", "key_of_admin", 403),
    ):
        with pytest.raises(Refused) as refused:
            keys.find(sent)
        assert (refused.value.code, refused.value.status) == (code, status)
    assert keys.find(b"good").id == "4"
    assert keys.find_admin(b"admin").id == "3"
    with pytest.raises(Refused, match="takes an admin key"):
        keys.find_admin(b"good")


def test_a_rotated_key_holds_until_its_time_is_over() -> None:
    key = Key("k", "bob")
    keys = Keys([(hash_of(b"old"), key)])
    keys.put(key, {hash_of(b"new"): None, hash_of(b"old"): time.time() + 60})
    assert keys.find(b"old") is keys.find(b"new") is key
    keys.put(key, {hash_of(b"new"): None, hash_of(b"old"): time.time() - 1})
    with pytest.raises(Refused, match="bob was rotated") as refused:
        keys.find(b"old")
    assert refused.value.code == "key_rotated"
    keys.put(key, {hash_of(b"new"): None})
    with pytest.raises(Refused, match="no such key"):
        keys.find(b"old")
