"""Clients that keep their settings in a database: what their forms and first start are given."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.connect.clients import rounds
from trimtab.connect.clients import dify, open_webui
from trimtab.connect.containers import from_container

SERVER = {"OPENAI_API_BASE_URL": f"{rounds.ROOT}/v1", "OPENAI_API_KEY": "k"}


def test_difys_form_is_filled_for_a_container() -> None:
    fields = dict(line.split("  ", 1) for line in dify.CLIENT.snippet(rounds.told(key="tt-secret")).splitlines())
    assert {name: value.strip() for name, value in fields.items()} == {
        "Model Name": rounds.MODEL,
        "API Key": "$TRIMTAB_API_KEY",
        "API Base URL": "http://host.docker.internal:8000/v1",
        "model name for API endpoint": rounds.MODEL,
        "Completion mode": "Chat",
        "Model context size": "40960",
        "Upper bound for max tokens": "40960",
    }


def test_open_webui_starts_with_either_line() -> None:
    here, docker = open_webui.CLIENT.snippet(rounds.told(key="tt-secret")).strip().split("\n\n")
    assert shlex.split(here)[0] == f"OPENAI_API_BASE_URL={rounds.ROOT}/v1"
    assert "OPENAI_API_BASE_URL=http://host.docker.internal:8000/v1" in shlex.split(docker)
    assert "OPENAI_API_KEY=$TRIMTAB_API_KEY" in shlex.split(docker)
    assert "tt-secret" not in here + docker


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("http://127.0.0.1:8000/v1", "http://host.docker.internal:8000/v1"),
        ("http://[::1]:8000/v1", "http://host.docker.internal:8000/v1"),
        ("http://localhost/v1", "http://host.docker.internal/v1"),
        ("https://gpu.example.com/v1", "https://gpu.example.com/v1"),
        ("http://10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
    ],
)
def test_only_this_hosts_own_names_are_replaced(url: str, inside: str) -> None:
    assert from_container(url) == inside


@pytest.mark.parametrize(
    ("environ", "codes"),
    [
        (SERVER, []),
        ({"OPENAI_API_BASE_URLS": f"{rounds.ROOT}/v1;https://x/v1", "OPENAI_API_KEYS": "k;l"}, []),
        (SERVER | {"OPENAI_API_BASE_URL": rounds.ROOT}, ["CLT011"]),
        (SERVER | {"OPENAI_API_KEY": "k "}, ["CLT003"]),
        ({"OPENAI_API_BASE_URL": f"{rounds.ROOT}/v1"}, ["CLT001"]),
        (SERVER | {"OPENAI_API_BASE_URLS": f"{rounds.ROOT}/v1;https://x/v1"}, ["CLT001", "CON007"]),
        ({}, ["CON001"]),
    ],
)
def test_open_webuis_environment_is_judged(tmp_path: Path, environ: dict[str, str], codes: list[str]) -> None:
    found = rounds.codes(open_webui.CLIENT, rounds.around(tmp_path, **environ))
    assert sorted(set(found)) == codes
