"""VS Code's chatLanguageModels.json: a group among others, lengths that fill the context, keys in plain text found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connect.clients import rounds
from trimtab.connect.clients.vscode import CLIENT, lengths
from trimtab.errors import UsageError

FILE = ".config/Code/User/chatLanguageModels.json"
PRESENT = """[
\t{
\t\t"name": "Ollama",
\t\t"vendor": "ollama", // mine
\t\t"url": "http://localhost:11434"
\t}
]"""


def _group(home: Path, **values: object) -> None:
    model: dict[str, object] = {
        "id": rounds.MODEL,
        "url": "http://127.0.0.1:8000/v1/chat/completions",
        "maxInputTokens": 30_720,
        "maxOutputTokens": 10_240,
    }
    group: dict[str, object] = {"name": "Trimtab", "vendor": "customendpoint", "apiKey": "${input:chat.lm.secret.1}"}
    for name, value in values.items():
        (group if name in group else model)[name] = value
    group["models"] = [model]
    rounds.put(home / FILE, json.dumps([{"name": "Ollama", "vendor": "ollama"}, group]))


def test_a_group_is_added_and_taken_back(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / FILE, PRESENT)
    here = rounds.around(tmp_path, TRIMTAB_API_KEY="tt-secret")
    rounds.written(CLIENT, here)
    text = file.read_text()
    assert text.startswith(PRESENT[:-3])
    assert "tt-secret" not in text
    group = json.loads(text.replace("// mine", ""))[1]
    assert (group["vendor"], group["models"][0]["id"]) == ("customendpoint", rounds.MODEL)
    assert rounds.codes(CLIENT, here, rounds.served(needs_key=False)) == []
    rounds.taken_back(here)
    assert file.read_text() == PRESENT


@pytest.mark.parametrize("text", ["", "\n// nothing yet\n", "[]"])
def test_an_empty_file_becomes_a_list(tmp_path: Path, text: str) -> None:
    file = rounds.put(tmp_path / FILE, text)
    here = rounds.around(tmp_path)
    rounds.written(CLIENT, here)
    assert json.loads(file.read_text().replace("// nothing yet", ""))[0]["name"] == "Trimtab"
    rounds.taken_back(here)
    assert file.read_text() == text


def test_a_file_of_another_shape_is_left_alone(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / FILE, '{"name": "Ollama"}')
    with pytest.raises(UsageError, match="chatLanguageModels"):
        rounds.written(CLIENT, rounds.around(tmp_path))
    assert file.read_text() == '{"name": "Ollama"}'


def test_the_users_own_switches_stay(tmp_path: Path) -> None:
    here = rounds.around(tmp_path)
    rounds.written(CLIENT, here)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace('"toolCalling": true', '"toolCalling": false'))
    rounds.written(CLIENT, here, rounds.told(root="http://127.0.0.1:8001"))
    assert '"toolCalling": false' in file.read_text()
    assert '"url": "http://127.0.0.1:8001/v1/chat/completions"' in file.read_text()


@pytest.mark.parametrize("context", [1024, 8192, 40_960, 131_072, 1_048_576])
def test_prompt_and_answer_fill_the_context(context: int) -> None:
    answer, prompt = lengths(context)
    assert answer + prompt == context
    assert 0 < answer <= 16_384


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:8000/v1", ""),
        ("http://127.0.0.1:8000", ""),  # VS Code adds /v1 itself
        ("http://127.0.0.1:8000/v1/chat/completions", ""),
        ("http://127.0.0.1:8000/v1/v1/chat/completions", "CLT012"),
        ("http://127.0.0.1:8000/chat/completions", "CLT011"),
        ("http://127.0.0.1:9/v1/chat/completions", "CON003"),
        ("127.0.0.1:8000/v1", "CLT017"),
    ],
)
def test_base_urls_are_judged_as_vscode_takes_them(tmp_path: Path, url: str, code: str) -> None:
    _group(tmp_path, url=url)
    assert rounds.codes(CLIENT, rounds.around(tmp_path)) == [code][: bool(code)]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"id": "Qwen3-8B"}, "CLT015"),
        ({"apiKey": "sk-in-plain-text"}, "CLT001"),
        ({"vendor": "customoai"}, "CON002"),
        ({"contextWindow": 8192}, "CON004"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, values: dict[str, object], code: str) -> None:
    _group(tmp_path, **values)
    assert code in rounds.codes(CLIENT, rounds.around(tmp_path))


@pytest.mark.parametrize(
    ("directory", "environ"),
    [
        ("Library/Application Support/Code/User", {}),
        (".config/Code - Insiders/User", {}),
        ("Roaming/Code/User", {"APPDATA": "Roaming"}),
        ("portable/user-data/User", {"VSCODE_PORTABLE": "portable"}),
    ],
)
def test_the_directory_of_the_system_is_found(tmp_path: Path, directory: str, environ: dict[str, str]) -> None:
    (tmp_path / directory).mkdir(parents=True)
    here = rounds.around(tmp_path, **{name: str(tmp_path / value) for name, value in environ.items()})
    rounds.written(CLIENT, here)
    assert list(rounds.files_below(tmp_path)) == [f"{directory}/chatLanguageModels.json"]
