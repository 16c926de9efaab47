"""Aider's configuration: the file that decides is the one that is changed; what goes before it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connect.clients import rounds
from trimtab.connect.clients.aider import CLIENT

PRESENT = """# mine
model: gpt-4o   # from last year
dark-mode: true
weak-model: gpt-4o-mini

read:
  - CONVENTIONS.md   # always
"""
GOOD = f"openai-api-base: {rounds.ROOT}/v1\nmodel: openai/{rounds.MODEL}\n"


def test_the_file_is_changed_in_place_and_taken_back(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / ".aider.conf.yml", PRESENT)
    here = rounds.around(tmp_path, OPENAI_API_KEY="tt-secret")
    rounds.written(CLIENT, here)
    text = file.read_text()
    assert "model: openai/Qwen/Qwen3-8B" in text
    assert "weak-model: openai/Qwen/Qwen3-8B" in text
    assert "# from last year" in text
    assert "  - CONVENTIONS.md   # always\n" in text
    assert "tt-secret" not in text
    assert rounds.codes(CLIENT, here) == []
    rounds.taken_back(here)
    assert file.read_text() == PRESENT
    assert list(rounds.files_below(tmp_path)) == [".aider.conf.yml"]


def test_the_context_goes_into_the_file_of_model_metadata(tmp_path: Path) -> None:
    before = '{"openai/other": {"max_input_tokens": 1}}'
    file = rounds.put(tmp_path / ".aider.model.metadata.json", before)
    here = rounds.around(tmp_path)
    rounds.written(CLIENT, here)
    said = json.loads(file.read_text())
    assert said["openai/Qwen/Qwen3-8B"] == {"max_input_tokens": 40_960, "litellm_provider": "openai", "mode": "chat"}
    assert said["openai/other"] == {"max_input_tokens": 1}
    rounds.taken_back(here)
    assert file.read_text() == before


def test_the_nearest_file_that_names_a_model_is_the_one_written(tmp_path: Path) -> None:
    rounds.put(tmp_path / ".aider.conf.yml", "model: gpt-4o\n")
    (tmp_path / "work" / ".git").mkdir(parents=True)
    near = rounds.put(tmp_path / "work/.aider.conf.yml", "model: o3\n")
    here = rounds.around(tmp_path, OPENAI_API_KEY="k")
    rounds.written(CLIENT, here)
    assert near.read_text() == f"model: openai/{rounds.MODEL}\nopenai-api-base: {rounds.ROOT}/v1\n"
    assert (tmp_path / ".aider.conf.yml").read_text() == "model: gpt-4o\n"
    assert rounds.codes(CLIENT, here) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GOOD.replace("/v1", ""), "CLT011"),
        (GOOD.replace("/v1", "/v1/v1"), "CLT012"),
        (GOOD.replace("8000", "9"), "CON003"),
        (GOOD.replace("Qwen3-8B", "Qwen3-9B"), "CLT015"),
        (GOOD.replace("openai/Qwen", "Qwen"), "CLT015"),
        (GOOD + "weak-model: openai/gpt-4o-mini\n", "CLT015"),
        (GOOD + "openai-api-key: 'tt-secret '\n", "CLT003"),
    ],
)
def test_a_fault_in_the_file_is_found(tmp_path: Path, text: str, code: str) -> None:
    rounds.put(tmp_path / ".aider.conf.yml", text)
    assert rounds.codes(CLIENT, rounds.around(tmp_path, OPENAI_API_KEY="k")) == [code]


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({}, "CLT001"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.example.com/v1"}, "CON007"),
        ({"OPENAI_API_KEY": "k", "HTTPS_PROXY": "http://proxy:3128"}, "CLT030"),
    ],
)
def test_a_fault_in_the_environment_is_found(tmp_path: Path, environ: dict[str, str], code: str) -> None:
    rounds.put(tmp_path / ".aider.conf.yml", GOOD)
    assert rounds.codes(CLIENT, rounds.around(tmp_path, **environ)) == [code]


def test_an_env_file_counts_as_environment_and_goes_before_it(tmp_path: Path) -> None:
    rounds.put(tmp_path / ".aider.conf.yml", GOOD)
    rounds.put(tmp_path / "work/.env", "OPENAI_API_KEY='of the file'\nOPENAI_BASE_URL=http://other/v1\n")
    here = rounds.around(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL=f"{rounds.ROOT}/v1")
    assert sorted(rounds.codes(CLIENT, here)) == ["CLT003", "CON007"]


def test_a_server_without_keys_gets_a_word_for_one(tmp_path: Path) -> None:
    here = rounds.around(tmp_path)
    rounds.written(CLIENT, here, rounds.told(needs_key=False))
    assert "openai-api-key: none\n" in (tmp_path / ".aider.conf.yml").read_text()
    assert rounds.codes(CLIENT, here, rounds.served(needs_key=False)) == []
