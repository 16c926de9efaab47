"""Clients that live in a user's own program: their snippets run, and what the environment says is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.clients import programs, rounds
from trimtab.connect.client import Client
from trimtab.connect.clients import anthropic_node, anthropic_python, langchain, llamaindex, openai_node
from trimtab.connect.values import NO_KEY


@pytest.mark.parametrize("needs_key", [True, False])
def test_openai_node_asks_with_its_snippet(tmp_path: Path, needs_key: bool) -> None:
    with programs.serving() as server:
        told = programs.told(server, needs_key=needs_key)
        assert programs.node(openai_node.CLIENT.snippet(told), tmp_path, key=needs_key)
    seen = programs.only(server)
    assert (seen.path, seen.body["model"]) == ("/chat/completions", "demo")
    assert programs.bearer(seen) == (programs.KEY if needs_key else NO_KEY)


def test_anthropic_python_asks_with_its_snippet(tmp_path: Path) -> None:
    with programs.serving() as server:
        assert programs.python(anthropic_python.CLIENT.snippet(programs.told(server)), tmp_path)
    seen = programs.only(server)
    assert (seen.path, seen.body["model"], programs.bearer(seen)) == ("/messages", "demo", programs.KEY)


CLIENTS = (openai_node.CLIENT, anthropic_python.CLIENT, anthropic_node.CLIENT, langchain.CLIENT, llamaindex.CLIENT)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_snippet_names_the_key_by_its_variable(client: Client) -> None:
    text = client.snippet(rounds.told(key="tt-secret", key_env="MY_KEY"))
    assert "MY_KEY" in text
    assert "tt-secret" not in text
    assert client.base_url(rounds.told()) in text
    assert rounds.MODEL in text


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_without_variables_no_server_is_named(tmp_path: Path, client: Client) -> None:
    assert rounds.codes(client, rounds.around(tmp_path)) == ["CON001"]


OPENAI = {"OPENAI_BASE_URL": f"{rounds.ROOT}/v1", "OPENAI_API_KEY": "k"}
OLDER = {"OPENAI_API_BASE": f"{rounds.ROOT}/v1", "OPENAI_API_KEY": "k"}
ANTHROPIC = {"ANTHROPIC_BASE_URL": rounds.ROOT, "ANTHROPIC_AUTH_TOKEN": "k"}


@pytest.mark.parametrize(
    ("client", "environ"),
    [
        (openai_node.CLIENT, OPENAI),
        (anthropic_python.CLIENT, ANTHROPIC),
        (anthropic_node.CLIENT, ANTHROPIC),
        (langchain.CLIENT, OPENAI),
        (langchain.CLIENT, OLDER),
        (llamaindex.CLIENT, OLDER),
    ],
)
def test_a_right_environment_has_no_fault(tmp_path: Path, client: Client, environ: dict[str, str]) -> None:
    assert rounds.codes(client, rounds.around(tmp_path, **environ)) == []


@pytest.mark.parametrize(
    ("client", "environ", "code"),
    [
        (openai_node.CLIENT, OPENAI | {"OPENAI_BASE_URL": rounds.ROOT}, "CLT011"),
        (openai_node.CLIENT, OPENAI | {"OPENAI_BASE_URL": f"{rounds.ROOT}/v1/v1"}, "CLT012"),
        (openai_node.CLIENT, OPENAI | {"OPENAI_API_KEY": " k"}, "CLT003"),
        (openai_node.CLIENT, OPENAI | {"OPENAI_API_KEY": ""}, "CLT001"),
        (openai_node.CLIENT, OPENAI | {"http_proxy": "http://p:1"}, "CLT030"),
        (anthropic_python.CLIENT, ANTHROPIC | {"ANTHROPIC_BASE_URL": f"{rounds.ROOT}/v1"}, "CLT012"),
        (anthropic_python.CLIENT, ANTHROPIC | {"ANTHROPIC_API_KEY": "another"}, "CON007"),
        (langchain.CLIENT, OPENAI | {"OPENAI_API_BASE": "http://127.0.0.1:9/v1"}, "CON003"),
        (langchain.CLIENT, OPENAI | {"OPENAI_PROXY": "http://p:1"}, "CLT030"),
        (llamaindex.CLIENT, OPENAI, "CON001"),
    ],
)
def test_a_fault_in_the_environment_is_found(
    tmp_path: Path, client: Client, environ: dict[str, str], code: str
) -> None:
    assert code in rounds.codes(client, rounds.around(tmp_path, **environ))
