"""KV per token and weights of well-known shapes, to the byte where arithmetic gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.errors import UsageError
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

CONFIGS = Path(__file__).parents[3] / "benchmarks" / "data" / "configs"
A10 = Card("NVIDIA A10", 22.05, 8.6)


def model(name: str) -> ModelFacts:
    return read_model(json.loads((CONFIGS / f"{name}.json").read_text()))


def plan(name: str, cards: int = 1, card: Card = A10, version: str = "0.26.0", **flags: object) -> Budget:
    facts = model(name)
    owned = [card] * cards
    return budget(resolve(Given(flags), release(version), facts, owned), facts, owned)


@pytest.mark.parametrize(
    ("name", "kib"), [("qwen2.5-72b", 320), ("qwen3-30b-a3b", 96), ("deepseek-v2-lite", 30.375), ("gpt-oss-20b", 24)]
)
def test_kv_per_token_beyond_windows(name: str, kib: float) -> None:
    assert plan(name, 8, tensor_parallel_size=1, pipeline_parallel_size=1).kv_bytes_per_token / 1024 == kib


def test_gemma_holds_80_kib_and_416_mib_a_sequence() -> None:
    found = plan("gemma-3-27b-text", 1)
    assert found.kv_bytes_per_token / 1024 == 80
    sliding = [c.cache for c in found.layout.caches if c.cache.kind == "sliding"]
    assert sum(c.token_bytes * 1024 for c in sliding) / 2**20 == 416


def test_weights_72b_fit_eight_a10_only_when_split() -> None:
    assert model("qwen2.5-72b").stored_bytes / 2**30 == pytest.approx(135.43, abs=0.01)
    split = plan("qwen2.5-72b", 8, tensor_parallel_size=8, max_model_len=8192)
    assert split.ranks[0].weights.value == pytest.approx(135.43 / 8, rel=0.01)
    assert len(split.ranks) == 8
    assert plan("qwen2.5-72b", 1).verdict == "oom_weights"


def test_too_few_cards_are_refused() -> None:
    with pytest.raises(UsageError, match="needs 4 GPUs; 2 are given"):
        plan("qwen2.5-7b", 2, tensor_parallel_size=4)


def test_kv_too_small_names_the_longest_that_fits() -> None:
    found = plan("llama-3.1-8b")
    assert found.verdict == "kv_too_small_for_max_len"
    longest = found.capacity.longest_len
    assert f"{longest:,}" in str(found.reasons[0])
    assert plan("llama-3.1-8b", max_model_len=longest).verdict != "kv_too_small_for_max_len"
    assert plan("llama-3.1-8b", max_model_len=longest + 16).verdict == "kv_too_small_for_max_len"


def test_cpu_engine_takes_the_space_asked_for() -> None:
    facts = model("qwen2.5-7b")
    cpu = [Card("CPU", 24.0, 0.0, "cpu")]
    given = Given({"max_model_len": 4096}, {"VLLM_CPU_KVCACHE_SPACE": "2"})
    found = budget(resolve(given, release("0.26.0"), facts, cpu), facts, cpu)
    assert found.tightest.kv_cache.value == 2
    assert found.capacity.kv_cache_tokens == pytest.approx(2 * 2**30 / 57344, rel=0.01)
    assert found.verdict == "fits"
