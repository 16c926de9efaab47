"""Keys of providers: encrypted where they lie, opened with the master key alone, shown nowhere."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from trimtab.errors import HostError, UsageError
from trimtab.gateway.secret import Secret
from trimtab.gateway.store.changes import changes
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.providers import (
    MASTER,
    all_providers,
    master_key,
    provider_key,
    put_provider,
    read_private,
    remove_provider,
)  # fmt: skip

PLANTED = "sk-planted-0123456789abcdef"


@pytest.fixture
def master(tmp_path: Path) -> Secret:
    return master_key(tmp_path / "config" / "master.key", {}, make=True)


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(PLANTED)
    shown = [repr(secret), str(secret), f"{secret:>20}", f"{[secret]}", repr({"a": secret})]
    assert not [text for text in shown if "planted" in text]
    for write in (msgspec.json.encode, json.dumps, pickle.dumps):
        with pytest.raises(TypeError) as refused:
            write(secret)
        assert "planted" not in str(refused.value)
    assert secret == Secret(PLANTED)
    assert secret != Secret("other")
    assert secret.reveal() == PLANTED


def test_a_key_is_kept_encrypted(store: Store, master: Secret) -> None:
    put_provider(store, "openai", Secret(PLANTED), master)
    assert provider_key(store, "openai", lambda: master).reveal() == PLANTED
    with store.reading() as connection:
        [row] = connection.execute(sa.text("SELECT * FROM providers")).all()
    assert PLANTED not in repr(tuple(row))
    if store.is_sqlite:
        assert PLANTED.encode() not in b"".join(f.read_bytes() for f in Path(store.shown).parent.iterdir())


def test_replaced_and_removed(store: Store, master: Secret) -> None:
    put_provider(store, "openai", Secret("one"), master)
    before = changes(store, 0, 0.0).version
    put_provider(store, "openai", Secret("two"), master)
    assert changes(store, before, 0.0).providers
    assert provider_key(store, "openai", lambda: master).reveal() == "two"
    assert [provider.name for provider in all_providers(store)] == ["openai"]
    before = changes(store, 0, 0.0).version
    remove_provider(store, "openai")
    assert changes(store, before, 0.0).providers
    assert all_providers(store) == []
    with pytest.raises(UsageError, match="no key of a provider openai"):  # told before the master key is asked for
        provider_key(store, "openai", lambda: pytest.fail("asked"))
    for call in (lambda: provider_key(store, "openai", lambda: master), lambda: remove_provider(store, "openai")):
        with pytest.raises(UsageError, match="no key of a provider openai"):
            call()


def test_another_master_key_opens_nothing(store: Store, master: Secret) -> None:
    put_provider(store, "openai", Secret(PLANTED), master)
    with pytest.raises(HostError, match="does not open the key of openai"):
        provider_key(store, "openai", lambda: Secret(Fernet.generate_key().decode()))


@pytest.mark.parametrize("key", ["", "two words", "sk-é", "sk-1\n"])
def test_what_is_no_key(store: Store, master: Secret, key: str) -> None:
    with pytest.raises(UsageError, match="empty or holds blanks") as refused:
        put_provider(store, "openai", Secret(key), master)
    assert key == "" or key not in str(refused.value.hint)
    with pytest.raises(UsageError, match="cannot be the name of a provider"):
        put_provider(store, "../x", Secret("k"), master)


def test_the_master_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "config" / "master.key"
    with pytest.raises(HostError, match="cannot read"):
        master_key(file, {})
    made = master_key(file, {}, make=True)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert master_key(file, {}, make=True) == made
    other = Fernet.generate_key().decode()
    assert master_key(file, {MASTER: other}).reveal() == other
    file.chmod(0o640)
    with pytest.raises(HostError, match="others may read it: its mode is 640"):
        master_key(file, {})
    with pytest.raises(HostError, match="the master key is none") as refused:
        master_key(file, {MASTER: "planted-but-short"})
    assert "planted" not in str(refused.value)


def test_a_file_with_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(PLANTED + "\n")
    file.chmod(0o600)
    assert read_private(file).reveal() == PLANTED
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(HostError, match="no text"):
        read_private(file)
