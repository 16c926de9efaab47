"""LiteLLM's config file: one entry of model_list under the served name, the key by its variable."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.connect.clients import rounds
from trimtab.connect.clients.litellm import CLIENT

PRESENT = """model_list:
  # the cloud
  - model_name: gpt
    litellm_params:
      model: openai/gpt-4o
      api_key: os.environ/OPENAI_API_KEY

general_settings:
  master_key: os.environ/MASTER   # keep
"""


def _entry(**values: str) -> str:
    said = {"model": f"hosted_vllm/{rounds.MODEL}", "api_base": f"{rounds.ROOT}/v1", "api_key": "os.environ/TT_KEY"}
    lines = "".join(f"      {name}: '{value}'\n" for name, value in (said | values).items() if value)
    return f"model_list:\n  - model_name: q\n    litellm_params:\n{lines}"


def test_an_entry_is_added_and_taken_back(tmp_path: Path) -> None:
    file = rounds.put(tmp_path / "work/config.yaml", PRESENT)
    here = rounds.around(tmp_path, TRIMTAB_API_KEY="tt-secret")
    rounds.written(CLIENT, here)
    text = file.read_text()
    assert "# the cloud" in text
    assert "os.environ/MASTER   # keep" in text
    assert YAML(typ="safe").load(text)["model_list"][1] == {
        "model_name": rounds.MODEL,
        "litellm_params": {
            "model": f"hosted_vllm/{rounds.MODEL}",
            "api_base": f"{rounds.ROOT}/v1",
            "api_key": "os.environ/TRIMTAB_API_KEY",
        },
        "model_info": {"max_input_tokens": 40_960},
    }
    assert rounds.codes(CLIENT, here) == []
    rounds.taken_back(here)
    assert file.read_text() == PRESENT


def test_the_snippet_is_what_is_written_where_there_is_no_file(tmp_path: Path) -> None:
    here = rounds.around(tmp_path)
    rounds.written(CLIENT, here)
    made = (tmp_path / "work/litellm_config.yaml").read_text()
    yaml = YAML(typ="safe")
    assert yaml.load(StringIO(CLIENT.snippet(rounds.told()))) == yaml.load(StringIO(made))


def test_the_named_file_is_the_one(tmp_path: Path) -> None:
    rounds.written(CLIENT, rounds.around(tmp_path, CONFIG_FILE_PATH=str(tmp_path / "proxy.yaml")))
    assert list(rounds.files_below(tmp_path)) == ["proxy.yaml"]


def test_a_configuration_of_something_else_is_left_alone(tmp_path: Path) -> None:
    rounds.put(tmp_path / "work/config.yaml", "server: nginx\n")
    rounds.written(CLIENT, rounds.around(tmp_path))
    assert (tmp_path / "work/config.yaml").read_text() == "server: nginx\n"


@pytest.mark.parametrize(
    ("values", "environ", "code"),
    [
        ({"api_base": rounds.ROOT}, {"TT_KEY": "k"}, "CLT011"),
        ({"api_base": f"{rounds.ROOT}/v1/v1"}, {"TT_KEY": "k"}, "CLT012"),
        ({"api_base": "http://127.0.0.1:9/v1"}, {"TT_KEY": "k"}, "CON003"),
        ({"model": "hosted_vllm/Qwen3-8B"}, {"TT_KEY": "k"}, "CLT015"),
        ({}, {}, "CLT001"),
        ({"api_key": ""}, {}, "CLT001"),
        ({"api_key": "tt secret"}, {}, "CLT003"),
        ({}, {"TT_KEY": "k", "ALL_PROXY": "http://p:1"}, "CLT030"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, values: dict[str, str], environ: dict[str, str], code: str) -> None:
    rounds.put(tmp_path / "work/litellm_config.yaml", _entry(**values))
    assert rounds.codes(CLIENT, rounds.around(tmp_path, **environ)) == [code]


def test_entries_of_clouds_alone_name_no_server(tmp_path: Path) -> None:
    rounds.put(tmp_path / "work/config.yaml", PRESENT)
    assert rounds.codes(CLIENT, rounds.around(tmp_path)) == ["CON001"]
