"""What holds for every launch: nothing negative, budgets close, and more of a good thing is never less."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory import Budget, Card, Given, budget, release, resolve

CONFIGS = Path(__file__).parents[3] / "benchmarks" / "data" / "configs"
NAMES = ("qwen2.5-7b", "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b", "gemma-3-27b-text")
VERSIONS = ("0.5.4", "0.6.6", "0.8.5", "0.9.2", "0.10.2", "0.12.0", "0.15.0", "0.18.0", "0.20.0", "0.26.0", "0.33.0")
MODELS = st.sampled_from(NAMES)
RELEASES = st.sampled_from(VERSIONS)
TOTALS = st.floats(8, 200)
LENGTHS = st.integers(16, 131072)
UTILS = st.floats(0.05, 0.99)


@cache
def model(name: str) -> ModelFacts:
    return read_model(json.loads((CONFIGS / f"{name}.json").read_text()))


def plan(name: str, version: str, total: float, cards: int = 1, **flags: object) -> Budget:
    owned = [Card("card", total)] * cards
    return budget(resolve(Given(flags), release(version), model(name), owned), model(name), owned)


@settings(deadline=None, max_examples=150)
@given(MODELS, RELEASES, TOTALS, LENGTHS, UTILS)
def test_nothing_is_negative_and_the_budget_closes(
    name: str, version: str, total: float, length: int, util: float
) -> None:
    found = plan(name, version, total, max_model_len=length, gpu_memory_utilization=util)
    rank = found.tightest
    for term in (rank.weights, rank.context.counted, rank.activation, rank.graphs, rank.deducted):
        assert term.value >= 0
    used = rank.weights.value + rank.context.counted.value + rank.activation.value + rank.deducted.value
    assert used + rank.kv_cache.value == pytest.approx(util * total, abs=1e-6)
    held = found.capacity
    assert held.num_blocks >= 0
    assert held.kv_cache_tokens >= 0
    assert 0 <= held.longest_len <= max(length, found.model.max_positions)


@settings(deadline=None, max_examples=100)
@given(MODELS, RELEASES, st.integers(1024, 32768), UTILS, st.floats(0.0, 0.3))
def test_more_utilization_never_holds_less(name: str, version: str, length: int, util: float, more: float) -> None:
    less = plan(name, version, 80, max_model_len=length, gpu_memory_utilization=util)
    more_ = plan(name, version, 80, max_model_len=length, gpu_memory_utilization=min(0.99, util + more))
    assert more_.capacity.num_blocks >= less.capacity.num_blocks
    assert more_.capacity.longest_len >= less.capacity.longest_len


@settings(deadline=None, max_examples=100)
@given(MODELS, st.sampled_from(VERSIONS[3:]), st.integers(256, 16384), st.integers(1, 16384))
def test_more_batched_tokens_never_leave_more_cache(name: str, version: str, tokens: int, more: int) -> None:
    small = plan(name, version, 140, max_num_batched_tokens=tokens, max_model_len=4096)
    large = plan(name, version, 140, max_num_batched_tokens=tokens + more, max_model_len=4096)
    assert large.tightest.kv_cache.value <= small.tightest.kv_cache.value + 1e-9


@settings(deadline=None, max_examples=60)
@given(MODELS, RELEASES, st.sampled_from([1, 2, 4, 8]))
def test_more_ranks_never_hold_more_weights_each(name: str, version: str, ranks: int) -> None:
    one = plan(name, version, 80, ranks, tensor_parallel_size=ranks, max_model_len=4096)
    twice = plan(name, version, 80, 2 * ranks, tensor_parallel_size=2 * ranks, max_model_len=4096)
    assert twice.ranks[0].weights.value <= one.ranks[0].weights.value


@settings(deadline=None, max_examples=100)
@given(MODELS, RELEASES, TOTALS, LENGTHS)
def test_the_longest_that_fits_does(name: str, version: str, total: float, length: int) -> None:
    found = plan(name, version, total, max_model_len=length)
    if found.capacity.longest_len >= length:
        assert found.verdict != "kv_too_small_for_max_len"
    elif found.verdict == "kv_too_small_for_max_len":
        assert found.capacity.longest_len < length


@settings(deadline=None, max_examples=60)
@given(RELEASES, TOTALS)
def test_fp8_cache_holds_twice_the_tokens(version: str, total: float) -> None:
    """Eagerly: with graphs FlashInfer, which attends over an fp8 cache, asks for its workspace beforehand."""
    full = plan("qwen2.5-7b", version, 40 + total, max_model_len=4096, enforce_eager=True)
    half = plan("qwen2.5-7b", version, 40 + total, max_model_len=4096, kv_cache_dtype="fp8", enforce_eager=True)
    assert half.capacity.num_blocks in (2 * full.capacity.num_blocks, 2 * full.capacity.num_blocks + 1)


def test_one_budget_takes_under_five_milliseconds() -> None:
    plan("qwen3-30b-a3b", "0.26.0", 80)
    best = min(_seconds() for _ in range(5))
    assert best < 0.015  # 0.002 s on an idle machine


def _seconds() -> float:
    started = time.perf_counter()
    plan("qwen3-30b-a3b", "0.26.0", 80)
    return time.perf_counter() - started
