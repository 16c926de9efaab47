"""Which finding comes first, what an earlier start counts for, when a fix is shown, and what noise changes: nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from trimtab.engine.command import LaunchCommand, apply_edits
from trimtab.engine.logs import read_log
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.facts.model import ModelFacts
from trimtab.rules.causes import Cause
from trimtab.rules.doctor import Diagnosis, DoctorFacts, diagnose, must_fail_again
from trimtab.rules.rule import Severity

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
INDEX = [(d, json.loads(row)) for d in ("cpu",) for row in (LOGS / d / "index.jsonl").read_text().splitlines()]
FAILURES = [(d, row) for d, row in INDEX if not row["healthy"]]
START = "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
HEADS = "ValueError: Total number of attention heads (52) must be divisible by tensor parallel size (3).\n"
DEAD = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
NOISE = (
    "WARNING 11-30 03:43:16 [api_server.py:936] CORS is open for all origins",
    "(EngineCore pid=42) WARNING 11-30 03:43:16 [interface.py:221] Using 'pin_memory=False' as WSL is detected.",
    "(Worker_TP1 pid=43) INFO 11-30 03:43:16 [shm_broadcast.py:548] No available shared memory broadcast block found "
    "in 60 seconds.",
    "(Worker_TP1 pid=43) WARNING 11-30 03:43:16 [custom_all_reduce.py:144] Custom allreduce is disabled because your "
    "platform lacks GPU P2P capability.",
)


def of(text: str, **facts: object) -> Diagnosis:
    return diagnose(read_log([text.encode()]), DoctorFacts(**facts))  # type: ignore[arg-type]


def names(diagnosis: Diagnosis) -> list[str]:
    return [f.rule.name for f in diagnosis.report.findings]


def test_the_cause_stands_before_its_consequence() -> None:
    assert names(of(START + HEADS + DEAD))[0] == "tensor-parallel-not-dividing"
    assert names(of(START + DEAD)) == ["engine-death-without-its-error"]


def test_what_an_earlier_start_died_of_is_a_note_once_a_later_one_serves() -> None:
    found = of(START + HEADS + START + READY)
    assert [(f.rule.name, f.severity) for f in found.report.findings] == [
        ("tensor-parallel-not-dividing", Severity.INFO)
    ]
    assert found.cause is None


def test_the_newest_start_s_cause_stands_before_an_earlier_one_s() -> None:
    kv = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"
    found = names(of(START + HEADS + START + kv))
    assert found[:2] == ["no-memory-left-for-kv-cache", "tensor-parallel-not-dividing"]


def test_a_fix_that_makes_an_error_is_not_shown() -> None:
    """On two cards a size that divides is shown; one that the linter refuses is not."""

    def model_of(command: LaunchCommand) -> ModelFacts:
        return find_model("meta-llama/Llama-3.1-8B-Instruct").facts()

    command = LaunchCommand.from_argv(
        [
            "vllm",
            "serve",
            "meta-llama/Llama-3.1-8B-Instruct",
            "--max-model-len",
            "16384",
            "--kv-cache-memory-bytes",
            "1G",
        ]
    )
    line = "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored "
    fits = of(
        f"{line}in KV cache (4096).\n", command=command, vllm="0.26.0", gpus=parse_gpus("H200"), model_of=model_of
    )
    fix = fits.report.findings[0].fix
    assert fix is not None
    assert apply_edits(command.source.text, fix.edits).endswith("--max-model-len 4096 --kv-cache-memory-bytes 1G")
    too_much = line + "in KV cache (900000).\n"
    refused = of(too_much, command=command, vllm="0.26.0", gpus=parse_gpus("H200"), model_of=model_of)
    assert refused.report.findings[0].fix is None


def test_the_linter_s_word_on_the_launch_where_no_rule_knows_the_error() -> None:
    command = LaunchCommand.from_argv(["vllm", "serve", "a/b", "--no-such-flag-at-all", "7"])
    found = of(START + "KeyError: 'never seen'\n", command=command, vllm="0.26.0")
    assert names(found)[0] == "failure-not-recognised"
    assert "flag-unknown" in names(found)
    assert {f.severity for f in found.report.findings[1:]} == {Severity.WARNING}


@pytest.mark.parametrize(("place", "row"), FAILURES, ids=[row["kind"] for _, row in FAILURES])
def test_noise_changes_no_diagnosis(place: str, row: dict[str, object]) -> None:
    rng = random.Random(7)
    lines = (LOGS / place / f"{row['kind']}.log").read_text(encoding="utf-8").split("\n")
    for line in NOISE * 2:
        lines.insert(rng.randrange(len(lines) + 1), line)
    status = row["exit_status"] if isinstance(row["exit_status"], int) else None
    cause = diagnose(read_log(["\n".join(lines).encode()], status)).report.findings[0].rule.cause
    assert cause == row["cause"]


def test_which_causes_must_end_the_next_start_too() -> None:
    assert must_fail_again(Cause.HEADS_NOT_DIVISIBLE) is True
    assert must_fail_again(Cause.GPU_MEMORY_HELD_BY_OTHER) is False
    assert must_fail_again(Cause.ENGINE_DEAD_UNEXPLAINED) is None


def test_the_numbers_of_ray_and_of_shared_memory_are_told() -> None:
    ray = b"ValueError: Cannot provide a placement group requiring 8 GPUs (specs=[]) within 18 seconds.\n"
    assert "Ray has not the 8 GPUs" in str(diagnose(read_log([ray])).report.findings[0].message)
    shm = b"RuntimeError: Insufficient space in /dev/shm: 161 MiB required, 58 MiB free. Increase /dev/shm.\n"
    assert "161 MiB are needed and 58 MiB free" in str(diagnose(read_log([shm])).report.findings[0].message)


def test_a_watchdog_s_end_is_no_client_s() -> None:
    said = b"[PG ID 2 Rank 0] Process group watchdog thread terminated with exception: CUDA error: unspecified launch\n"
    assert "stream-cut" not in [f.rule.name for f in diagnose(read_log([said])).report.findings]


def test_a_flag_that_this_version_has_and_the_program_refuses() -> None:
    said = "INFO 11-30 03:43:16 [api_server.py:1] vLLM API server version {}\n"
    said += "vllm: error: unrecognized arguments: --gpu-memory-utilization\n"
    for version, words in (("0.32.0", "vLLM 0.32.0 has the flag --gpu-"), ("0.3.0", "this vLLM is too old for --gpu-")):
        found = diagnose(read_log([said.format(version).encode()])).report.findings[0]
        assert str(found.message).startswith(words)


def test_no_rank_mends_an_adapter_with_a_bias() -> None:
    said = (
        "INFO 11-30 03:43:16 [api_utils.py:286] non-default args: {'model_tag': '/models/m', 'model': '/models/m', "
        "'enable_lora': True}\nValueError: LoRA rank 48 is greater than max_lora_rank 16. "
        "Adapter bias is not supported.\n"
    )
    found = diagnose(read_log([said.encode()])).report.findings
    assert [f.rule.name for f in found][:2] == ["lora-rank-above-limit", "lora-not-supported"]
    assert found[0].fix is None


def test_what_pydantic_puts_around_a_refusal_is_left_out() -> None:
    said = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for LoRAConfig\n  Value error, max_cpu_loras "
        "(4) must be >= max_loras (6). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]\n"
    )
    message = diagnose(read_log([said.encode()])).report.findings[0].message
    assert str(message) == "a value is refused: max_cpu_loras (4) must be >= max_loras (6)."
