"""Workers in processes of their own on one store: limits, revocation, and what a sudden end loses."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from tests.gateway.store.conftest import Postgres
from trimtab.gateway.limits import Limits
from trimtab.gateway.store import tables
from trimtab.gateway.store.database import Store, open_store
from trimtab.gateway.store.keys import Made, Wish, change_key, create_key, revoke_key, rotate_key
from trimtab.gateway.store.plans import put_plan

TOP = Path(__file__).parents[3]
WITHIN_S = 1.0
SLACK_S = 3.0  # for a busy machine: a process that waits for its turn tells nothing of the design


class Worker:
    """One worker process."""

    def __init__(self, address: str) -> None:
        argv = [sys.executable, "-m", "tests.gateway.store.worker", address]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TOP)
        self.id = self.answer()["ready"]

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return dict(json.loads(line)) if line else {}

    def say(self, *words: str) -> None:
        assert self.process.stdin is not None
        print(*words, file=self.process.stdin, flush=True)

    def ask(self, *words: str) -> dict[str, Any]:
        self.say(*words)
        return self.answer()

    def enter(self, made: Made) -> str:
        """ "" or the code of the refusal."""
        return str(self.ask("enter", made.text.reveal()).get("refused", ""))

    def end(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGTERM)
        told = self.answer()
        assert self.process.wait(30) == 0
        return told

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(store: Store, address: str) -> Iterator[Callable[[], Worker]]:
    started: list[Worker] = []

    def begin() -> Worker:
        started.append(Worker(address))
        return started[-1]

    yield begin
    for worker in started:
        worker.close()


def soon(what: Callable[[], object], within: float = WITHIN_S + SLACK_S) -> float:
    """Wait until `what` holds; the seconds that it took."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < within, what()
        time.sleep(0.02)
    return time.monotonic() - begun


def total(store: Store, column: str = "requests") -> float:
    with store.reading() as connection:
        return float(
            connection.execute(sa.select(sa.func.coalesce(sa.func.sum(tables.usage.c[column]), 0))).scalar_one()
        )


def test_a_key_made_changed_rotated_and_revoked_while_workers_run(store: Store, start: Callable[[], Worker]) -> None:
    one, two = start(), start()
    made = create_key(store, Wish("k"))
    for worker in (one, two):
        soon(lambda w=worker: w.enter(made) == "")
        worker.ask("leave", "1")
    change_key(store, "k", {"limits": Limits(models=("other",))})
    for worker in (one, two):
        soon(lambda w=worker: w.enter(made) == "model_not_allowed")
    change_key(store, "k", {"limits": Limits()})
    other = rotate_key(store, "k", grace_s=0)
    for worker in (one, two):
        soon(lambda w=worker: w.enter(other) == "")
        assert worker.enter(made) == "key_rotated"
    revoke_key(store, "k")
    for worker in (one, two):
        soon(lambda w=worker: w.enter(other) == "key_revoked")


def test_a_changed_plan_reaches_running_workers(store: Store, start: Callable[[], Worker]) -> None:
    put_plan(store, "p", Limits(endpoints=("embeddings",)))
    made = create_key(store, Wish("k", plan="p"))
    worker = start()
    assert worker.enter(made) == "endpoint_not_allowed"
    put_plan(store, "p", Limits(endpoints=("chat",)))
    soon(lambda: worker.enter(made) == "")


@pytest.mark.parametrize(
    ("limits", "times", "tokens"), [(Limits(requests_per_minute=4), 4, 100), (Limits(tokens_per_minute=40), 1, 400)]
)
def test_rates_hold_over_two_workers(
    store: Store, start: Callable[[], Worker], limits: Limits, times: int, tokens: int
) -> None:
    made = create_key(store, Wish("k", limits=limits))
    one, two = start(), start()
    for _ in range(times):
        assert one.enter(made) == ""
        one.ask("leave", str(tokens))
    assert one.enter(made) == "rate_limit_exceeded"
    soon(lambda: two.ask("peek", made.text.reveal())["tokens"] == 400)
    assert two.enter(made) == "rate_limit_exceeded"
    one.end()
    assert start().enter(made) == "rate_limit_exceeded"  # nor does a restart open them


def test_concurrency_holds_over_two_workers_until_one_is_gone(store: Store, start: Callable[[], Worker]) -> None:
    made = create_key(store, Wish("k", limits=Limits(concurrency=4)))
    one, two = start(), start()
    for _ in range(4):
        assert one.enter(made) == ""
    soon(lambda: two.ask("peek", made.text.reveal())["parallel"] == 4)
    assert two.enter(made) == "rate_limit_exceeded"
    one.process.kill()  # what ran in a worker that is gone runs no longer
    soon(lambda: two.enter(made) == "", within=12)


def test_budgets_hold_over_two_workers_and_a_restart(store: Store, start: Callable[[], Worker]) -> None:
    made = create_key(store, Wish("k", limits=Limits(tokens_per_day=1000, money_per_month=5.0)))
    one, two = start(), start()
    assert one.enter(made) == two.enter(made) == ""
    one.ask("leave", "1000")
    assert one.enter(made) == "insufficient_quota"
    soon(lambda: two.enter(made) == "insufficient_quota")
    three = start()
    assert three.enter(made) == "insufficient_quota"
    change_key(store, "k", {"limits": Limits(money_per_month=0.001)})
    soon(lambda: "0.001 a month" in str(two.ask("enter", made.text.reveal()).get("message")))


def test_a_killed_worker_loses_less_than_a_second(store: Store, start: Callable[[], Worker]) -> None:
    made = create_key(store, Wish("k"))
    worker = start()
    worker.enter(made)
    worker.say("pour", "60", "0.005")
    for _ in range(300):
        worker.answer()
    worker.process.kill()
    killed = time.time()
    worker.process.wait()
    assert worker.process.stdout is not None
    times = [
        json.loads(line)["at"] for line in worker.process.stdout if line.startswith('{"at"') and line.endswith("}\n")
    ]
    kept = total(store)
    said = 300 + len(times)
    recent = sum(1 for at in times if at > killed - WITHIN_S)
    assert said - max(recent, 200) <= kept <= said + 1
    assert kept >= 300 - 200


def test_a_worker_told_to_end_loses_nothing(store: Store, start: Callable[[], Worker]) -> None:
    made = create_key(store, Wish("k"))
    worker = start()
    worker.enter(made)
    for _ in range(100):
        worker.ask("leave", "3")
    assert worker.end() == {"lost": 0}
    assert (total(store), total(store, "prompt_tokens")) == (100, 300)
    assert total(store, "money") == pytest.approx(300 / 1e6)
    with store.reading() as connection:
        gone = connection.execute(sa.select(tables.workers.c.id).where(tables.workers.c.id == worker.id)).all()
    assert gone == []


def test_connections_that_break_at_any_moment_lose_and_double_nothing(postgres: Postgres) -> None:
    address = postgres.database()
    store = open_store(address, Path())
    made = create_key(store, Wish("k"))
    store.close()
    worker = Worker(address)
    try:
        worker.enter(made)
        worker.say("pour", "3", "0.005")
        end = time.monotonic() + 3
        ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        with psycopg.connect(postgres.address("postgres"), autocommit=True) as connection:
            while time.monotonic() < end:
                connection.execute(ends, [address.rpartition("/")[2]])
                time.sleep(0.03)
        said = 0
        while "at" in worker.answer():
            said += 1
        assert worker.end() == {"lost": 0}
        again = open_store(address, Path())
        assert total(again) == said
        again.close()
    finally:
        worker.close()


def test_a_store_that_goes_away_stops_nobody_and_gets_all_later(postgres: Postgres) -> None:
    address = postgres.database()
    store = open_store(address, Path())
    made = create_key(store, Wish("k"))
    store.close()
    worker = Worker(address)
    try:
        assert worker.enter(made) == ""
        worker.ask("leave", "1")
        soon(lambda: worker.ask("health") == {"reachable": True, "rows_kept": 0, "reason": ""})
        postgres.stop()
        for _ in range(50):
            assert worker.enter(made) == ""
            worker.ask("leave", "1")
        soon(lambda: worker.ask("health")["reachable"] is False, within=10)
        told = worker.ask("health")
        assert told["rows_kept"] > 0
        assert "tester:***@127.0.0.1" in told["reason"]
        for _ in range(50):
            assert worker.enter(made) == ""
            worker.ask("leave", "1")
        postgres.start()
        soon(lambda: worker.ask("health") == {"reachable": True, "rows_kept": 0, "reason": ""}, within=15)
        lost, back = worker.ask("said")["said"]
        assert lost.endswith("; requests go on, usage is kept in memory until it is back")
        assert back.startswith("the store is back after ")
        again = open_store(address, Path())
        assert total(again) == 101
        again.close()
        idle = Worker(address)
        postgres.stop()
        worker.ask("leave", "1")
        assert worker.end() == {"lost": 1}
        assert idle.end() == {"lost": 0}
        idle.close()
    finally:
        worker.close()
        if postgres.process is None:
            postgres.start()


def test_a_file_that_is_removed_or_put_back_under_a_worker(sqlite_with_tables: Path, tmp_path: Path) -> None:
    file, kept = tmp_path / "store.db", tmp_path / "kept.db"
    shutil.copy(sqlite_with_tables, file)
    store = open_store(str(file), file)
    made = create_key(store, Wish("k"))
    store.close()
    worker = Worker(str(file))
    try:
        assert worker.enter(made) == ""
        worker.ask("leave", "1")
        soon(lambda: worker.ask("health") == {"reachable": True, "rows_kept": 0, "reason": ""})
        with sqlite3.connect(kept) as copy, sqlite3.connect(file) as whole:
            whole.backup(copy)
        copy.close()
        whole.close()
        for one in tmp_path.glob("store.db*"):
            one.unlink()
        soon(lambda: worker.ask("health")["reachable"] is False)
        assert not file.exists()
        assert worker.enter(made) == ""
        worker.ask("leave", "1")
        kept.rename(file)
        soon(lambda: worker.ask("health") == {"reachable": True, "rows_kept": 0, "reason": ""})
        again = open_store(str(file), file)
        assert total(again) == 2
        again.close()
    finally:
        worker.close()
