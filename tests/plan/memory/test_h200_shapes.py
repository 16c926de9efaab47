"""Starts on two H200 (vLLM 0.26.0) of shapes that a plain decoder lacks, predicted first: bounds and known misses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan.memory.h200 import error, predict, rows

ROWS = rows("h200_shapes.jsonl")
PREFIX = "h200-shapes-"
BOUNDS = {
    "weights_gib_per_gpu": 0.005,
    "activation_peak_gib": 0.012,
    "available_kv_gib_per_gpu": 0.0015,
    "kv_cache_tokens": 0.0015,
    "cuda_graph_gib": 0.08,
}
MISSES = {
    ("tp2-q7-graph", "activation_peak_gib"): "a compiled MLP holds two hidden rows fewer than an eager one",
    ("tp2-dsl-graph", "cuda_graph_gib"): "what MLA's whole-model graphs keep is known in part",
    ("pp2-q7-graph", "cuda_graph_gib"): "0.04 GiB of 0.43",
    ("l8-eagle3-eager", "weights_gib_per_gpu"): "dummy weights load no output matrix of the head's own",
    ("l8-eagle3-eager", "available_kv_gib_per_gpu"): "by its weights",
    ("l8-eagle-graph", "cuda_graph_gib"): "graphs of the draft are not modelled",
    ("oss-kvfp8-eager", "activation_peak_gib"): "0.014 GiB of 0.83",
    ("oss-noprefix-eager", "activation_peak_gib"): "0.014 GiB of 0.83",
    ("moe12-graph-s16", "activation_peak_gib"): "0.035 GiB: experts compiled with 16 sequences",
    ("moe12-graph-s16", "cuda_graph_gib"): "0.03 GiB of 0.07",
    ("dsl-graph-s16", "cuda_graph_gib"): "as on two cards",
    ("dsl-graph-s512", "cuda_graph_gib"): "as on two cards",
    ("oss-graph-s256", "cuda_graph_gib"): "0.08 GiB of 0.61",
    ("next-graph-s256", "activation_peak_gib"): "the compiler timed kernels under the forward, 0.06 GiB",
    ("next-graph-s256", "cuda_graph_gib"): "0.08 GiB of 0.42",
    ("q7-graph-sizes8", "cuda_graph_gib"): "sizes far apart share the pool badly",
    ("q35-text-graph", "activation_peak_gib"): "the compiler timed kernels under the forward, 0.06 GiB",
    ("g27-graph-s64", "cuda_graph_gib"): "0.04 GiB of 0.21",
    ("q7-fullonly-graph", "cuda_graph_gib"): "no piecewise capture: 0.07 GiB less workspace",
}  # fmt: skip
"""Terms outside the bounds, with the reason."""


@pytest.mark.parametrize("term", BOUNDS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_terms(row: dict[str, Any], term: str) -> None:
    found = error(row, predict(row), term)
    if found is not None:
        assert (found > BOUNDS[term]) == ((row["id"].removeprefix(PREFIX), term) in MISSES), found


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_they_start_and_their_blocks(row: dict[str, Any]) -> None:
    found = predict(row)
    assert found.verdict == "fits"
    if row["observed"]["block_size"]:
        assert found.capacity.block_size == row["observed"]["block_size"]


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r["gpu_count"] == 2 and "dp2" not in r["id"]], ids=lambda r: r["id"]
)
def test_communicators_before_the_snapshot(row: dict[str, Any]) -> None:
    assert predict(row).tightest.context.before.value == pytest.approx(row["observed"]["cuda_context_gib"], abs=0.03)


def test_shared_experts_capture_a_second_stream() -> None:
    row = next(r for r in ROWS if r["id"] == PREFIX + "dsl-graph-s16")
    assert predict(row).tightest.graphs.value == pytest.approx(row["observed"]["cuda_graph_gib"], abs=0.016)
