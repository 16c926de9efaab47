"""`trimtab keys`: what it prints, what it refuses, and that no text of a key is seen twice."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli.main import run
from trimtab.gateway.config import Price
from trimtab.gateway.secret import Secret
from trimtab.gateway.store.batches import Batch, write
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.keys import one_key
from trimtab.gateway.store.providers import master_key, provider_key
from trimtab.gateway.tally import Tally
from trimtab.gateway.usage import Record

PLANTED = "sk-planted-0123456789abcdef"
Told = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TRIMTAB_STORE", raising=False)
    return tmp_path


@pytest.fixture
def told(place: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Run a verb that succeeds; its report."""

    def call(*words: str) -> str:
        assert run(["keys", *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out.strip()

    return call


@pytest.fixture
def refused(place: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Run a verb that cannot work; what it says."""

    def call(*words: str) -> str:
        assert run(["keys", *words]) == 2
        return capsys.readouterr().err

    return call


def value(text: str) -> dict[str, Any]:
    return dict(json.loads(text))


def test_a_key_is_printed_alone_and_once(told: Told, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told("create", "--label", "bob", "--plan", "coding", "--tag", "team=search")
    assert text.startswith("tt-")
    assert len(text) == 46
    assert (place / "data" / "trimtab" / "gateway" / "store.db").exists()
    listed = told("list") + told("show", "bob") + told("show", "bob", "--json") + told("list", "--json")
    assert text not in listed
    assert text[:9] in listed
    assert "requests_per_minute: 120 (of the plan)" in listed
    assert "team=search" in listed


def test_limits_of_a_key_are_changed_one_by_one(told: Told) -> None:
    told(
        "create",
        "--label",
        "k",
        "--limit",
        "models=qwen*,gpt-oss-20b",
        "--limit",
        "tokens-per-day=2M",
        "--limit",
        "concurrency=4",
    )
    told(
        "change",
        "k",
        "--limit",
        "concurrency=none",
        "--limit",
        "money_per_month=12.5",
        "--owner",
        "ops",
        "--expires",
        "30d",
    )
    key = value(told("show", "k", "--json"))
    assert key["limits"] == {"models": ["qwen*", "gpt-oss-20b"], "tokens_per_day": 2_000_000, "money_per_month": 12.5}
    assert key["owner"] == "ops"
    assert 29 * 86400 < key["expires"] - time.time() <= 30 * 86400
    told("change", "k", "--expires", "never", "--plan", "coding")
    key = value(told("show", "k", "--json"))
    assert (key["expires"], key["plan"], key["in_force"]["concurrency"]) == (None, "coding", 8)


def test_rotation_and_revocation(told: Told, refused: Told) -> None:
    first = told("create", "--label", "k")
    second = told("rotate", "k", "--grace", "10m")
    assert first != second
    key = value(told("show", "k", "--json"))
    assert [text["start"] for text in key["texts"]] == [first[:9], second[:9]]
    assert "gateways refuse it within a second" in told("revoke", "k")
    assert told("list") == "there is no key; trimtab keys create makes one"
    assert "revoked" in told("list", "--all")
    assert "was revoked or has expired" in refused("rotate", second[:9])


def test_an_admin_key(told: Told) -> None:
    made = value(told("create", "--admin", "--json"))
    assert made["text"].startswith("tt-admin-")
    assert made["admin"] is True


def test_plans(told: Told, refused: Told) -> None:
    told("plans", "set", "small", "--limit", "concurrency=1", "--limit", "endpoints=chat,messages")
    told("plans", "set", "small", "--limit", "concurrency=2")
    told("create", "--label", "k", "--plan", "small")
    plans = {plan["name"]: plan for plan in value(told("plans", "list", "--json"))["plans"]}
    assert plans["small"]["limits"] == {"concurrency": 2, "endpoints": ["chat", "messages"]}
    assert (plans["small"]["keys"], plans["coding"]["keys"]) == (1, 0)
    assert "concurrency=2" in told("plans", "show", "small")
    assert "is the plan of 1 keys" in refused("plans", "remove", "small")
    told("change", "k", "--plan", "none")
    assert "small" not in told("plans", "remove", "small")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create", "--limit", "request_per_minute=5"), "Did you mean requests_per_minute=VALUE?"),
        (("create", "--limit", "concurrency"), "'concurrency' is no limit"),
        (("create", "--limit", "models="), "models cannot be ''"),
        (("create", "--limit", "concurrency=many"), "concurrency cannot be 'many'"),
        (("create", "--limit", "concurrency=1.5"), "concurrency cannot be '1.5'"),
        (("create", "--limit", "concurrency=0"), "concurrency cannot be 0"),
        (("create", "--limit", "endpoints=chat,chats"), "endpoints cannot be 'chats'"),
        (("create", "--limit", "xyz=1"), "Limits are: models, endpoints"),
        (("create", "--tag", "team"), "'team' is no tag"),
        (("create", "--expires", "soon"), "'soon' is no duration"),
        (("create", "--expires", "2001-01-01"), "expired already"),
        (("create", "--expires", "2027-13-01"), "'2027-13-01' is no day"),
        (("create", "--plan", "gold"), "there is no plan gold"),
        (("show", "nobody"), "there is no key nobody"),
        (("change", "nobody"), "there is no key nobody"),
        (("plans", "show", "gold"), "there is no plan gold"),
        (("usage", "--by", "colour"), "usage is not added up by 'colour'"),
        (("usage", "--since", "1x"), "'1x' is no duration"),
        (("usage", "--since", "1d", "--until", "2d"), "--since 1d lies behind --until 2d"),
        (("revoke", ""), "no key is named"),
        (("create", "--label", "a\nb"), "cannot be a label"),
        (("provider", "remove", "x"), "no key of a provider x"),
        (("provider", "set", "x", "--from-env", "NOT_SET_HERE"), "the variable NOT_SET_HERE is not set"),
        (("list", "--store", "mysql://u:planted@h/d"), "the store is not named by mysql://"),
    ],
)
def test_what_it_refuses(refused: Told, words: tuple[str, ...], says: str) -> None:
    said = refused(*words)
    assert says in said
    assert "planted" not in said
    assert "Traceback" not in said


def test_a_change_of_nothing(told: Told, refused: Told) -> None:
    told("create", "--label", "k")
    assert "nothing is named that is to change" in refused("change", "k")


def test_the_store_that_the_gateway_is_configured_with(told: Told, place: Path) -> None:
    config = place / "config" / "trimtab" / "gateway.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"store: {place}/other.db\n")
    told("create", "--label", "k")
    assert (place / "other.db").exists()
    told("create", "--label", "elsewhere", "--store", f"sqlite:///{place}/third.db")
    assert "elsewhere" not in told("list")
    assert "elsewhere" in told("list", "--store", str(place / "third.db"))


def test_usage_by_key_and_model(told: Told, place: Path) -> None:
    told("create", "--label", "bob")
    store = open_store(None, place / "data" / "trimtab" / "gateway" / "store.db")
    id = one_key(store, "bob").id
    tally = Tally({}, {"m": Price(prompt=1000.0)})
    tally(Record(id, "m", "b", "/chat/completions", 200, 1500, 20, 40, 0.7, 0.06, True))
    tally(Record(id, "m", "b", "/chat/completions", 503, 0, 0, 0, 0.7, 0.06, False))
    assert told("usage") == "nothing was used in that time"
    with store.writing() as to:
        write(to, "w", "host:1", Batch(1, tally.take()))
    store.close()
    text = told("usage")
    assert f"{id} (bob)" in text
    assert "1,500" in text
    assert "1.5000" in text
    [group] = value(told("usage", "--by", "key,day", "--key", "bob", "--json"))["groups"]
    assert (group["requests"], group["failed"], group["uncounted"], group["money"]) == (2, 1, 1, 1.5)
    assert group["group"] == {"key": id, "day": time.strftime("%Y-%m-%d", time.gmtime())}
    assert value(told("usage", "--by", "", "--since", "1d", "--json"))["groups"][0]["requests"] == 2
    assert value(told("usage", "--until", "1d", "--json"))["groups"] == []


def test_a_provider_key_comes_by_stdin_variable_or_file(
    told: Told, refused: Told, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(PLANTED + "\n"))
    shown = told("provider", "set", "openai")
    monkeypatch.setenv("THEIR_KEY", PLANTED + "2")
    shown += told("provider", "set", "other", "--from-env", "THEIR_KEY")
    file = place / "key"
    file.write_text(PLANTED + "3")
    assert "others may read it" in refused("provider", "set", "third", "--from-file", str(file))
    file.chmod(0o600)
    shown += told("provider", "set", "third", "--from-file", str(file)) + told("provider", "list", "--json")
    assert "planted" not in shown
    store = open_store(None, place / "data" / "trimtab" / "gateway" / "store.db")
    master = master_key(place / "config" / "trimtab" / "master.key", {})
    found = [provider_key(store, name, lambda: master) for name in ("openai", "other", "third")]
    store.close()
    assert found == [Secret(PLANTED), Secret(PLANTED + "2"), Secret(PLANTED + "3")]
    assert "openai" not in told("provider", "remove", "openai")
    assert "one of them" in refused("provider", "set", "x", "--from-file", str(file), "--from-env", "THEIR_KEY")


def test_chinese(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "密钥" in told("list", "--lang", "zh")
