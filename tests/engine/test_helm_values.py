"""Values of the production stack's chart: read as its template would start vLLM, edited in place."""

from __future__ import annotations

import pytest

from trimtab.engine.command import LaunchCommand, apply_edits, read_commands

VALUES = """\
servingEngineSpec:
  runtimeClassName: ""
  modelSpec:
  - name: "llama3"
    repository: "vllm/vllm-openai"
    tag: "v0.26.0"
    modelURL: "meta-llama/Llama-3.1-8B-Instruct"
    requestGPU: 2
    pvcStorage: "50Gi"
    env:
    - name: VLLM_LOGGING_LEVEL
      value: "DEBUG"
    vllmConfig:
      enableChunkedPrefill: true
      enablePrefixCaching: false
      maxModelLen: 16384  # half
      tensorParallelSize: 2
      extraArgs: ["--max-num-seqs", "32", "--seed=7", "$(NAME)"]
  - name: off
    enabled: false
    modelURL: "org/m"
"""


def only(text: str) -> LaunchCommand:
    reading = read_commands(text, "values.yaml")
    assert reading.problems == ()
    (command,) = reading.commands
    return command


def test_reads_what_the_chart_would_start() -> None:
    command = only(VALUES)
    assert command.argv() == [
        "vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--enable-chunked-prefill", "--no-enable-prefix-caching",
        "--max-model-len", "16384", "--tensor-parallel-size", "2", "--max-num-seqs", "32", "--seed", "7",
    ]  # fmt: skip
    assert {name: use.value for name, use in command.env.items()} == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert command.container is not None
    assert (command.container.version, command.container.gpu_count) == ("0.26.0", 2)
    assert [stray.text for stray in command.strays] == ["$(NAME)"]


@pytest.mark.parametrize(
    ("name", "value", "before", "after"),
    [
        ("max-model-len", "8192", "maxModelLen: 16384  # half", "maxModelLen: 8192  # half"),
        ("max-num-seqs", "8", '"--max-num-seqs", "32"', '"--max-num-seqs", "8"'),
    ],
)
def test_a_flag_is_set_where_it_stands(name: str, value: str, before: str, after: str) -> None:
    command = only(VALUES)
    assert apply_edits(VALUES, command.edit_set(name, value)) == VALUES.replace(before, after)


def test_a_flag_is_removed_with_its_key() -> None:
    command = only(VALUES)
    text = apply_edits(VALUES, command.edit_remove("max-model-len"))
    assert only(text).get("max-model-len") is None
    assert "# half" in text or "maxModelLen" not in text
    assert only(text).get("tensor-parallel-size") == "2"


def test_a_flag_is_added_to_the_arguments() -> None:
    command = only(VALUES)
    text = apply_edits(VALUES, command.edit_set("dtype", "half"))
    assert only(text).get("dtype") == "half"


def test_a_systemd_unit_s_doubled_signs_stand_for_one() -> None:
    unit = (
        "[Service]\nEnvironment=VLLM_HOST_IP=10.0.0.1\nEnvironment=\"A=100%%\" B=2\n"
        "ExecStart=/usr/bin/env vllm serve \"/m/$$x %%h\" --served-model-name %i --seed 7\n"
    )  # fmt: skip
    (command,) = read_commands(unit, "vllm.service").commands
    assert command.model is not None
    assert command.model.text == "/m/$x %h"
    assert not command.model.unknown
    assert {name: use.value for name, use in command.env.items()} == {
        "VLLM_HOST_IP": "10.0.0.1", "A": "100%", "B": "2",
    }  # fmt: skip
    assert [flag.unknown for flag in command.flags] == [True, False]
    assert apply_edits(unit, command.edit_set("seed", "8")) == unit.replace("--seed 7", "--seed 8")
