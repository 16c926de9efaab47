"""PostgreSQL that hangs (stopped, so that it acknowledges bytes and says nothing) under gateways that serve."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from tests.gateway.fake_back_end import back_end
from tests.gateway.process import gateway
from tests.gateway.store.conftest import Postgres
from trimtab.gateway.secret import Secret
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.providers import put_provider, remove_provider

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
MASTER = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@contextmanager
def stopped(server: Postgres) -> Iterator[None]:
    """All its processes, for a block."""
    assert server.process is not None
    parent = psutil.Process(server.process.pid)
    parent.suspend()  # first, so that none is made meanwhile
    inside = parent.children(recursive=True)
    try:
        for child in inside:
            child.suspend()
        yield
    finally:
        for child in (*inside, parent):
            child.resume()


def config(url: str, name: str) -> str:
    return (
        f"local: false\nback_ends:\n  b: {{url: {url}, key: {{stored: {name}}}}}\n"
        "models:\n  m: {targets: [{back_end: b}]}\n"
    )


@pytest.fixture
def address(postgres: Postgres, postgres_with_tables: str) -> str:
    return postgres.database(like=postgres_with_tables)


def requests(address: str) -> float:
    store = open_store(address, Path("unused"))
    try:
        with store.reading() as connection:
            return float(connection.execute(sa.select(sa.func.sum(tables.usage.c.requests))).scalar_one() or 0)
    finally:
        store.close()


def test_requests_go_on_while_a_reload_waits_for_it(tmp_path: Path, postgres: Postgres, address: str) -> None:
    store = open_store(address, Path("unused"))
    for name in ("one", "two"):
        put_provider(store, name, Secret(f"sk-of-{name}"), Secret(MASTER))
    environ = {"TRIMTAB_MASTER_KEY": MASTER}
    with back_end() as behind:
        started = gateway(
            tmp_path, config(behind.url, "one"), "--store", address, "--workers", "2", environ=environ
        )  # fmt: skip
        with started as running:

            def ask() -> str:
                began = time.monotonic()
                assert running.ask("POST", "/v1/chat/completions", CHAT)[0] == 200
                assert time.monotonic() - began < 3
                return behind.seen[-1][1]["authorization"]

            assert ask() == "Bearer sk-of-one"
            with stopped(postgres):
                (tmp_path / "gateway.yaml").write_text(config(behind.url, "two"))
                os.kill(running.child.pid, signal.SIGHUP)
                ends = time.monotonic() + 4
                while time.monotonic() < ends:
                    assert ask() == "Bearer sk-of-one"
                    time.sleep(0.1)
                running.said("(?s)(not reloaded: the store .*no answer within 6 s.*){2}")
                running.said("requests go on, usage is kept in memory")
                assert ask() == "Bearer sk-of-one"
            running.said("(?s)(the store is back.*){2}")
            os.kill(running.child.pid, signal.SIGHUP)
            running.said("(?s)(gateway: reloaded: .*){2}")
            assert {ask() for _ in range(6)} == {"Bearer sk-of-two"}
            remove_provider(store, "two")
            running.said("(?s)(not reloaded: the store has no key of a provider two.*){2}")
            put_provider(store, "two", Secret("sk-other"), Secret(MASTER))
            asked = 0
            while ask() != "Bearer sk-other":
                asked += 1
                assert asked < 100
                time.sleep(0.05)
        assert running.child.returncode == 0
        assert "hangs" not in running.log.read_text()
        assert requests(address) == len(behind.seen)
    store.close()


def test_a_gateway_that_ends_does_not_wait_for_it_for_ever(tmp_path: Path, postgres: Postgres, address: str) -> None:
    with back_end() as behind:
        text = config(behind.url, "one").replace("stored: one", "env: PROVIDER")
        with gateway(tmp_path, text, "--store", address, environ={"PROVIDER": "sk"}) as running, stopped(postgres):
            assert running.ask("POST", "/v1/chat/completions", CHAT)[0] == 200
            running.child.send_signal(signal.SIGTERM)
            assert running.child.wait(30) == 0
    running.said("the usage of 1 requests is lost")
