"""client.json: the article's five settings; a key in it is taken out, and the program still runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connect.clients import programs, rounds
from trimtab.connect.clients.client_json import CLIENT

PRESENT = """{
  "base_url": "http://127.0.0.1:8000",
  "api_key": "sk-in-plain-text",
  "model": "Qwen2.5-72B-Instruct",
  "timeout": 60
}
"""


def _client(**values: object) -> str:
    said = {"base_url": f"{rounds.ROOT}/v1", "api_key": "tt-secret", "model": rounds.MODEL} | values
    return json.dumps(said)


def test_a_file_is_mended_and_taken_back(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / "work/client.json", PRESENT)
    here = rounds.around(tmp_path, TRIMTAB_API_KEY="k")
    shown = rounds.written(CLIENT, here)
    assert json.loads(file.read_text()) == {
        "base_url": "http://127.0.0.1:8000/v1", "model": rounds.MODEL, "timeout": 60, "max_retries": 2,
    }  # fmt: skip
    assert "sk-in-plain-text" not in shown
    assert rounds.codes(CLIENT, here) == []
    rounds.taken_back(here)
    assert file.read_text() == PRESENT


def test_a_key_is_written_when_told_to(tmp_path: Path) -> None:
    here = rounds.around(tmp_path, CLIENT_JSON="conf/mine.json")
    shown = rounds.written(CLIENT, here, rounds.told(key="tt-secret", write_key=True))
    assert "tt-secret" not in shown
    assert json.loads((tmp_path / "work/conf/mine.json").read_text())["api_key"] == "tt-secret"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"base_url": rounds.ROOT}, "CLT011"),
        ({"base_url": f"{rounds.ROOT}/v1/v1/"}, "CLT012"),
        ({"base_url": "localhost:8000/v1"}, "CLT017"),
        ({"model": "Qwen2.5-72B-Instruct"}, "CLT015"),
        ({"api_key": "tt-secret "}, "CLT003"),
        ({"api_key": ""}, "CLT001"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, values: dict[str, object], code: str) -> None:
    rounds.put(tmp_path / "work/client.json", _client(**values))
    assert rounds.codes(CLIENT, rounds.around(tmp_path)) == [code]


def test_the_program_asks_the_server_with_the_file(tmp_path: Path) -> None:
    with programs.serving() as server:
        connection = programs.told(server)
        here = rounds.around(tmp_path)
        rounds.written(CLIENT, here, connection)
        assert programs.python(CLIENT.snippet(connection), here.cwd)
    seen = programs.only(server)
    assert (seen.path, seen.body["model"], programs.bearer(seen)) == ("/chat/completions", "demo", programs.KEY)
