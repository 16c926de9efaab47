"""How layers group: windows, recurrent states, sparse MLA and DeepSeek V4, against what vLLM logged for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Card, Given, Settings, release, resolve
from trimtab.plan.memory.caches import place_caches
from trimtab.plan.memory.kv import Layout, layout

CONFIGS = Path(__file__).parents[3] / "benchmarks" / "data" / "configs"
GIB = 1 << 30
H200 = [Card("H200", 139.8, 9.0, nvlink=True)]


def config(name: str) -> ModelFacts:
    return read_model(json.loads((CONFIGS / f"{name}.json").read_text()))


def planned(model: ModelFacts, version: str = "0.26.0", **flags: object) -> tuple[Settings, Layout]:
    settings = resolve(Given(flags), release(version), model, H200)
    return settings, layout(settings, model)


def test_gemma_makes_seven_groups_of_ten() -> None:
    """0.11 logged 7 groups with 8 padding layers for Gemma-3-27B."""
    _, found = planned(config("gemma-3-27b"), "0.11.0", max_model_len=4096)
    assert len(found.groups) == 7
    assert found.padding_layers == 8


def test_a_window_as_long_as_the_context_costs_as_much() -> None:
    """EXAONE 4's window of 4,096 saves nothing at 4,096: 0.11 logged 10.28 requests in 10.31 GiB."""
    settings, found = planned(config("exaone-4-32b"), "0.11.0", max_model_len=4096, max_num_batched_tokens=2048)
    blocks = int(10.31 * GIB // found.block_bytes(found.whole))
    assert blocks / found.request_blocks(settings.max_model_len) == pytest.approx(10.28, abs=0.03)


def test_hybrid_block_grows_until_a_state_fits() -> None:
    """0.26 raised Qwen3-Next's attention block to 544 tokens; 0.27 Qwen3.6-27B's to 1,568 with an fp8 cache."""
    _, found = planned(config("qwen3-next-12layers"))
    assert found.block_size == 544
    assert 0 < found.state_padding < 0.3
    _, found = planned(config("qwen3.6-27b"), "0.27.0", kv_cache_dtype="fp8")
    assert found.block_size == 1568


def test_hybrid_length_check() -> None:
    """0.27.1 needed 6.56 GiB for 204,800 tokens of Qwen3.6-27B with an fp8 cache and prefix caching."""
    model = config("qwen3.6-27b")
    flags = {"kv_cache_dtype": "fp8", "max_model_len": 204800, "enable_prefix_caching": True}
    settings, found = planned(model, "0.27.1", **flags)
    assert found.request_bytes(found.whole, settings.max_model_len) / GIB == pytest.approx(6.56, abs=0.02)


def test_sparse_mla_caches_the_indexers_keys_too() -> None:
    """In fp8 a layer caches 656 bytes a token and 132 of the indexer's."""
    model = find_model("deepseek-ai/DeepSeek-V3.2").facts()
    settings, found = planned(model, "0.20.0", kv_cache_dtype="fp8")
    per_token = found.block_bytes(found.whole) / found.block_size / model.num_layers
    assert per_token == 656 + 132
    assert len(place_caches(settings, model.layers)[0]) == 2 * model.num_layers


def test_deepseek_v4_packs_its_caches() -> None:
    """0.22 needed 6.66 GiB for 30,000 tokens and gave 13,528 as the longest that 5.44 GiB hold."""
    model = find_model("deepseek-ai/DeepSeek-V4-Flash").facts()
    _, found = planned(model, "0.22.0", kv_cache_dtype="fp8", max_num_batched_tokens=16384, max_model_len=30000)
    assert found.request_bytes(found.whole, 30000) / GIB == pytest.approx(6.66, abs=0.005)
    assert found.request_bytes(found.whole, 13528) <= 5.445 * GIB < found.request_bytes(found.whole, 13528 + 512)


def test_deepseek_v4_concurrency() -> None:
    """0.26 logged 150,992 tokens at 121,344 in 7.71 GiB, with 8,192 tokens in each of two batches in flight."""
    model = find_model("deepseek-ai/DeepSeek-V4-Flash-0731").facts()
    settings, found = planned(model, "0.26.0", kv_cache_dtype="fp8", max_num_batched_tokens=8192, max_model_len=121344)
    blocks = int(7.71 * GIB // found.block_bytes(found.whole))
    tokens = blocks / found.request_blocks(121344) * 121344
    assert tokens == pytest.approx(150992, rel=0.005)
    assert settings.runner == "v1"


def test_mla_was_padded_mha_before_0_7() -> None:
    model = config("deepseek-v2-lite")
    _, before = planned(model, "0.6.6")
    _, after = planned(model, "0.7.0")
    assert before.block_bytes(before.whole) / before.block_size == 27 * 16 * 256 * 2 * 2
    assert after.block_bytes(after.whole) / after.block_size == 27 * 576 * 2


def test_context_parallel_ranks_share_a_request() -> None:
    model = config("deepseek-v2-lite")
    settings, one = planned(model)
    four = layout(replace(settings, decode_context_parallel_size=4), model)
    assert four.request_blocks(4096) * 4 == one.request_blocks(4096)
