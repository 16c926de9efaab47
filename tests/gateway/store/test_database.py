"""Opening a store: made once, whoever comes first; refused with its name where it cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.gateway.store.conftest import Postgres
from trimtab.errors import HostError, UsageError
from trimtab.gateway.limits import PRESETS
from trimtab.gateway.store.database import HEAD, Store, open_store
from trimtab.gateway.store.plans import one_plan
from trimtab.gateway.store.tables import metadata
from trimtab.gateway.store.upgrading import known

OPEN = """
import sys
from pathlib import Path
from trimtab.gateway.store.database import open_store
open_store(sys.argv[1], Path()).close()
"""


def test_the_newest_migration_is_the_one_that_is_looked_for() -> None:
    assert known()[0] == HEAD


def test_migrations_make_the_tables_that_the_code_uses(store: Store) -> None:
    with store.reading() as connection:
        differences = compare_metadata(MigrationContext.configure(connection, {"compare_type": True}), metadata)
    assert differences == []


def test_every_store_has_the_preset_plan(store: Store) -> None:
    assert one_plan(store, "coding").limits == PRESETS["coding"]


def test_four_processes_open_a_new_store_at_once(address: str) -> None:
    running = [subprocess.Popen([sys.executable, "-c", OPEN, address], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(p.communicate(timeout=60)[1], p.returncode) for p in running] == [(b"", 0)] * 4
    store = open_store(address, Path("unused"))
    assert one_plan(store, "coding").keys == 0
    store.close()


def test_a_store_of_a_newer_trimtab_is_left_alone(store: Store, address: str) -> None:
    with store.writing() as to:
        to.connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(HostError, match=r"made by a newer Trimtab \(its tables are at 9999\)"):
        open_store(address, Path("unused"))


def test_a_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    store = open_store(None, tmp_path / "new" / "store.db")
    with store.writing():
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "new").iterdir()}
    store.close()
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@pytest.mark.parametrize("address", ["mysql://a:pw@b/c", "sqlite://", "postgres", "://", "sqlite:///:memory:"])
def test_an_address_that_names_no_store(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if address == "postgres":  # a plain word is a file
        open_store(address, Path("unused")).close()
        assert (tmp_path / "postgres").exists()
        return
    with pytest.raises(UsageError, match="the store is not named by") as refused:
        open_store(address, Path("unused"))
    assert "pw" not in str(refused.value)


def test_a_store_that_cannot_be_used_is_named_without_its_password(tmp_path: Path, postgres: Postgres) -> None:
    gone = postgres.address("nowhere")
    with pytest.raises(HostError, match="nowhere") as refused:
        open_store(gone, Path("unused"))
    closed = gone.replace(str(postgres.port), "1")
    with pytest.raises(HostError, match=r"tester:\*\*\*@127.0.0.1:1/nowhere") as unreachable:
        open_store(closed, Path("unused"))
    wrong = gone.replace("kept-secret", "wrong-secret")
    with pytest.raises(HostError, match="password authentication failed") as denied:
        open_store(wrong, Path("unused"))
    for error in (refused, unreachable, denied):
        assert "-secret" not in str(error.value)
    (tmp_path / "file.db").write_bytes(b"this is no database, " * 100)
    with pytest.raises(HostError, match="not a database"):
        open_store(str(tmp_path / "file.db"), Path("unused"))
    with pytest.raises(HostError, match="directory"):
        open_store(str(tmp_path), Path("unused"))


def test_postgresql_without_its_driver(tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('not here')")
    program = OPEN.replace("import sys\n", "import sys\nsys.path.insert(0, sys.argv[2])\n", 1)
    done = subprocess.run(
        [sys.executable, "-c", program, "postgresql://a@127.0.0.1/b", str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert "PostgreSQL needs the package psycopg, which is not installed" in done.stderr
