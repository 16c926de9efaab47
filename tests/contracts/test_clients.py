"""Every client program is declared whole: a row and a part in docs/clients.md, a snippet, a check for its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.connect.checking import CODES
from trimtab.connect.containers import from_container
from trimtab.connect.registry import CLIENTS, client
from trimtab.connect.values import Connection, Protocol

TOP = Path(__file__).parents[2]
TOLD = Connection(root="http://127.0.0.1:8000", model="qwen-7b", key="sk-secret")


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_whole(name: str) -> None:
    found = client(name)
    assert found.name == name
    docs = (TOP / "docs" / "clients.md").read_text()
    row = next(line for line in docs.splitlines() if line.startswith(f"| `{name}` |"))
    assert found.version in row
    assert f"\n## {name}\n" in docs
    assert found.edits is None or found.read is not None
    assert row.endswith(f"| {found.needed_tokens:,} |" if found.needed_tokens else "| |")


@pytest.mark.parametrize("name", CLIENTS)
def test_a_snippet_names_the_three_things_and_never_the_key(name: str) -> None:
    found = client(name)
    text = found.snippet(TOLD)
    assert found.base_url(TOLD) in text or from_container(found.base_url(TOLD)) in text
    assert found.with_v1 or TOLD.with_v1 not in text
    assert TOLD.model in text
    assert TOLD.key_env in text
    assert TOLD.key not in text


def test_every_module_is_listed() -> None:
    modules = {p.stem for p in (TOP / "src/trimtab/connect/clients").glob("*.py")} - {"__init__"}
    assert modules == set(CLIENTS.values())


def test_codes_are_documented() -> None:
    docs = (TOP / "docs" / "connect.md").read_text()
    assert all(f"| {code} | {name} |" in docs for code, (name, _) in CODES.items())
    assert len(Protocol) == 3
