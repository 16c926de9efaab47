"""Stages and ranks as vLLM cuts them."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.facts.model import read_model
from trimtab.plan.parallel import kv_heads_per_rank, refusals, stages

CONFIGS = Path(__file__).parents[2] / "benchmarks" / "data" / "configs"


def sizes(layers: int, pipeline: int, **kw: bool) -> list[int]:
    return [s.layers for s in stages(layers, pipeline, **kw)]


def test_what_does_not_divide_goes_before_the_last_stage() -> None:
    assert sizes(27, 2) == [14, 13]  # DeepSeek-V2-Lite on two stages, 0.9.2
    assert sizes(93, 4) == [23, 23, 24, 23]
    assert sizes(62, 4) == [15, 16, 16, 15]
    assert sizes(80, 8) == [10] * 8


def test_before_0_8_the_last_stage_takes_the_rest() -> None:
    assert sizes(27, 2, older=True) == [13, 14]


def test_a_partition_is_taken_as_given() -> None:
    cut = stages(48, 2, (16, 32))
    assert [(s.start, s.end, s.first, s.last) for s in cut] == [(0, 16, True, False), (16, 48, False, True)]


def test_heads_beyond_the_kv_heads_replicate() -> None:
    assert [kv_heads_per_rank(4, tp) for tp in (1, 2, 4, 8)] == [4, 2, 1, 1]


def test_refusals_name_what_divides() -> None:
    model = read_model(json.loads((CONFIGS / "qwen2.5-7b.json").read_text()))
    assert not refusals(model, 4, 1)
    assert "28 attention heads do not divide by --tensor-parallel-size 8" in str(refusals(model, 8, 1)[0])
    assert str(refusals(model, 8, 1)[0]).endswith("these do: 1, 2, 4")
    assert refusals(model, 1, 29)
