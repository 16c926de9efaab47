"""Zed's settings.json: the provider written beside others, the key's variable by the provider's name, faults found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.clients import rounds
from trimtab.connect.clients.zed import CLIENT, provider
from trimtab.engine.api import ServedModel
from trimtab.errors import UsageError

PRESENT = """// Zed settings
{
  "theme": "One Dark", // dark
  "language_models": {
    "openai_compatible": {
      "other": {"api_url": "https://example.com/v1", "available_models": []},
    },
  },
  /* chosen long ago */
  "agent": { "default_model": { "provider": "zed.dev", "model": "claude-sonnet" } },
}
"""
SET = """{
  "language_models": {"openai_compatible": {"NAME": {"api_url": "URL", "available_models": [
    {"name": "MODEL", "max_tokens": 40960, "max_output_tokens": 4000}]}}},
  "agent": {"default_model": {"provider": "CHOSEN", "model": "MODEL"}}
}
"""


def _set(home: Path, url: str, *, model: str = rounds.MODEL, chosen: str = "trimtab", name: str = "trimtab") -> None:
    text = SET.replace("NAME", name).replace("URL", url).replace("MODEL", model).replace("CHOSEN", chosen)
    rounds.put(home / ".config/zed/settings.json", text)


def test_a_provider_is_written_beside_another_and_taken_back(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / ".config/zed/settings.json", PRESENT)
    here = rounds.around(tmp_path, TRIMTAB_API_KEY="tt-secret")
    shown = rounds.written(CLIENT, here)
    text = file.read_text()
    assert '+        "api_url": "http://127.0.0.1:8000/v1"' in shown
    assert "-  /*" not in shown
    assert "// dark" in text
    assert '"other": {"api_url": "https://example.com/v1", "available_models": []}' in text
    assert '"max_tokens": 40960' in text
    assert "tt-secret" not in text
    assert rounds.codes(CLIENT, here) == []
    rounds.taken_back(here)
    assert file.read_text() == PRESENT


def test_a_file_that_was_not_there_is_taken_away_again(tmp_path: Path) -> None:
    here = rounds.around(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    rounds.written(CLIENT, here)
    assert list(rounds.files_below(tmp_path)) == ["xdg/zed/settings.json"]
    rounds.taken_back(here)
    assert rounds.files_below(tmp_path) == {}


def test_a_length_of_the_users_own_stays_where_the_server_tells_none(tmp_path: Path) -> None:
    _set(tmp_path, "http://127.0.0.1:8000/v1")
    here = rounds.around(tmp_path)
    assert rounds.written(CLIENT, here, rounds.told(context_tokens=None)) == ""


@pytest.mark.parametrize(("variable", "name"), [("TRIMTAB_API_KEY", "trimtab"), ("MY_GATEWAY_API_KEY", "my-gateway")])
def test_the_provider_is_named_so_that_zed_reads_the_variable(tmp_path: Path, variable: str, name: str) -> None:
    here = rounds.around(tmp_path, **{variable: "tt-secret"})
    rounds.written(CLIENT, here, rounds.told(key_env=variable))
    assert provider(variable) == name
    assert f'"{name}": {{' in (tmp_path / ".config/zed/settings.json").read_text()
    assert rounds.codes(CLIENT, here) == []


@pytest.mark.parametrize("variable", ["OPENAI_KEY", "trimtab_api_key", "KEY2_API_KEY"])
def test_a_variable_that_zed_cannot_read_is_refused(variable: str) -> None:
    with pytest.raises(UsageError, match="PROVIDER_API_KEY"):
        provider(variable)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:8000", "CLT011"),
        ("http://127.0.0.1:8000/v1/v1", "CLT012"),
        ("http://127.0.0.1:8000/v1/chat/completions", "CLT012"),
        ("http://127.0.0.1:9/v1", "CON003"),
    ],
)
def test_a_wrong_base_url_is_found(tmp_path: Path, url: str, code: str) -> None:
    _set(tmp_path, url)
    assert code in rounds.codes(CLIENT, rounds.around(tmp_path, TRIMTAB_API_KEY="k"))


def test_model_key_and_choice_are_judged(tmp_path: Path) -> None:
    _set(tmp_path, "http://127.0.0.1:8000/v1", model="Qwen3-8B", chosen="zed.dev")
    found = rounds.codes(CLIENT, rounds.around(tmp_path, TRIMTAB_API_KEY="tt-secret\n", HTTP_PROXY="http://p:1"))
    assert sorted(found) == ["CLT003", "CLT015", "CLT030", "CON009"]
    assert "CLT001" in rounds.codes(CLIENT, rounds.around(tmp_path))


def test_a_length_that_is_not_the_servers_is_found(tmp_path: Path) -> None:
    _set(tmp_path, "http://127.0.0.1:8000/v1")
    server = rounds.served(models=(ServedModel(rounds.MODEL, 8192),))
    assert rounds.codes(CLIENT, rounds.around(tmp_path, TRIMTAB_API_KEY="k"), server) == ["CON004"]


def test_other_settings_alone_name_no_server(tmp_path: Path) -> None:
    rounds.put(tmp_path / ".config/zed/settings.json", PRESENT)
    assert rounds.codes(CLIENT, rounds.around(tmp_path)) == ["CON001"]
