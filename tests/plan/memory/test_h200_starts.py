"""Starts on one H200 (vLLM 0.26.0), most of them predicted first: bounds of each term, and the known misses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trimtab.facts.model import read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

DATA = Path(__file__).parents[3] / "benchmarks" / "data"
WARM = {"h200-026-q7-graph-warm-2048"}
HELD = "h200-026-fail-held"
"""Another process held 100 GiB of the card, which no flag tells."""
ROWS = [r for line in (DATA / "h200_026.jsonl").read_text().splitlines() if (r := json.loads(line))["id"] != HELD]
FAILED = {"oom_runtime_after_graph": "oom_cuda_graph"}
BOUNDS = {
    "weights_gib_per_gpu": 0.005,
    "activation_peak_gib": 0.025,
    "available_kv_gib_per_gpu": 0.0015,
    "cuda_graph_gib": 0.08,
}
MISSES = {
    ("h200-026-dsl-graph-s256", "cuda_graph_gib"): "what MLA's whole-model graphs keep is known in part",
    ("h200-026-q7-graph-warm-2048", "activation_peak_gib"): "a compiled MLP holds a little less; 0.01 GiB",
    ("h200-026-fail-kv-small", "activation_peak_gib"): "0.01 GiB of 0.3",
    ("h200-026-fail-kv-small", "available_kv_gib_per_gpu"): "0.015 GiB of 5.4",
    ("h200-026-fail-no-blocks", "activation_peak_gib"): "0.02 GiB of 0.35: 1,024 sequences",
    ("h200-026-fail-no-blocks", "available_kv_gib_per_gpu"): "0.02 GiB of -0.88",
    ("h200-026-q7-fp8-online", "activation_peak_gib"): "0.01 GiB of 0.31",
    ("h200-026-oss-eager-2048-s16", "activation_peak_gib"): "0.01 GiB of 0.15",
    ("h200-026-q7-graph-s16", "cuda_graph_gib"): "0.02 GiB of 0.14",
}  # fmt: skip
"""Terms outside the bounds, with the reason."""


def predict(row: dict[str, Any]) -> Budget:
    model = read_model(json.loads((DATA / "configs" / f"{row['model']}.json").read_text()))
    cards = [Card("H200", 139.8, 9.0, nvlink=True)]
    flags = {k: v for k, v in row["flags"].items() if k not in ("other", "compilation_config")}
    flags |= row["flags"].get("compilation_config", {})
    env = dict(re.findall(r"(\w+)=(\w+)", row["flags"].get("other", "")))
    settings = resolve(Given(flags, env, usage="llm"), release(row["vllm_version"]), model, cards)
    return budget(
        replace(settings, compile_cache=row["id"] in WARM, flashinfer=False, flashinfer_sampler=False), model, cards
    )


def error(row: dict[str, Any], term: str) -> float | None:
    """Relative error of a term; None where the log did not tell it."""
    seen = row["observed"][term]
    rank = predict(row).tightest
    found = {
        "weights_gib_per_gpu": rank.weights, "activation_peak_gib": rank.activation,
        "available_kv_gib_per_gpu": rank.kv_cache, "cuda_graph_gib": rank.graphs,
    }  # fmt: skip
    return None if seen is None else abs(found[term].value / seen - 1)


@pytest.mark.parametrize("term", BOUNDS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_terms(row: dict[str, Any], term: str) -> None:
    found = error(row, term)
    if found is not None:
        assert (found > BOUNDS[term]) == ((row["id"], term) in MISSES), found


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_verdict(row: dict[str, Any]) -> None:
    seen = row["observed"]["startup_error"]
    assert predict(row).verdict == (FAILED.get(seen, seen) if seen else "fits")


def test_the_estimate_that_the_v1_runner_deducts() -> None:
    seen = {r["id"]: r for r in ROWS if r["observed"]["cuda_graph_estimate_gib"]}
    assert len(seen) == 2
    for row in seen.values():
        found = predict(row).tightest.deducted.value
        assert found == pytest.approx(row["observed"]["cuda_graph_estimate_gib"], rel=0.1)


def test_the_v2_runner_of_this_release_offloads_no_weights() -> None:
    row = next(r for r in ROWS if "offload" in r["id"])
    assert predict(row).tightest.weights.value == pytest.approx(14.29, abs=0.005)
