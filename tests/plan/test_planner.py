"""The planner on known models: numbers worked out from config.json and vLLM's rules."""

from __future__ import annotations

import pytest

from tests.plan.models import QWEN_7B, QWEN_72B
from trimtab.errors import UsageError
from trimtab.facts.gpu import cpu, parse_gpus
from trimtab.facts.model import ModelFacts, read_model
from trimtab.plan.memory.card import cards_of
from trimtab.plan.planner import Plan, Task, Wish, plan, splits


def task(config: dict[str, object], gpus: str, **pinned: object) -> Task:
    model: ModelFacts = read_model(config)
    return Task("/models/m", "m", model, cards_of(parse_gpus(gpus)), "0.26", pinned)


def words(made: Plan) -> str:
    return " ".join(made.command.argv())


def test_the_article_s_model_on_eight_a10() -> None:
    made = plan(task(QWEN_72B, "8xA10"), Wish(32768, 2))
    assert made.fits
    assert "--tensor-parallel-size 8" in words(made)
    assert "--max-model-len 32768" in words(made)
    assert "--dtype" not in words(made)
    assert made.budget.model.stored_bytes / 2**30 == pytest.approx(135.43, abs=0.01)
    assert made.budget.model.kv_elements_per_token() * 2 == 320 * 1024
    assert made.budget.tightest.card.total_gib == pytest.approx(22.05, abs=0.02)
    assert made.budget.capacity.kv_cache_tokens >= 2 * 32768


def test_cards_without_bfloat16_get_half() -> None:
    assert "--dtype half" in words(plan(task(QWEN_72B, "8xV100-32"), Wish(32768, 2)))


def test_the_fewest_cards_that_serve_are_taken() -> None:
    made = plan(task(QWEN_7B, "8xA100-80"), Wish(8192, 4))
    assert made.fits
    assert "--tensor-parallel-size" not in words(made)


def test_when_nothing_fits_the_nearest_is_told() -> None:
    made = plan(task(QWEN_72B, "4xA100-80"), Wish(32768, 64))
    assert not made.fits
    assert made.alternatives
    assert all(other.budget.verdict == "fits" for other in made.alternatives)


def test_every_flag_has_its_reason() -> None:
    made = plan(task(QWEN_72B, "8xA10"), Wish(32768, 2))
    given = {flag.name for flag in made.command.flags}
    assert {why.flag.removeprefix("--") for why in made.why} == given
    assert all(str(why.reason) for why in made.why)


def test_pinned_flags_are_kept() -> None:
    made = plan(task(QWEN_7B, "H200", max_model_len=4096, gpu_memory_utilization=0.5), Wish())
    assert "--max-model-len 4096" in words(made)
    assert "--gpu-memory-utilization 0.5" in words(made)


def test_utilization_is_computed_and_leaves_room() -> None:
    made = plan(task(QWEN_7B, "A10"), Wish(8192, 4))
    assert made.fits
    assert min(rank.headroom.value for rank in made.budget.ranks) >= 0.3


def test_splits_spread_heads_evenly() -> None:
    assert [s.tensor for s in splits(task(QWEN_7B, "8xA10")) if s.pipeline == 1] == [1, 2, 4]


def test_the_cpu_engine_gets_its_space() -> None:
    made = plan(Task("/m", "m", read_model(QWEN_7B), cards_of(cpu(64.0)), "0.32", {}), Wish(8192, 4))
    assert made.fits
    assert made.env == {"VLLM_CPU_KVCACHE_SPACE": "2"}
    assert "--gpu-memory-utilization" not in words(made)


@pytest.mark.parametrize("wish", [Wish(0, 1), Wish(-5, 1), Wish(8192, 0), Wish(40000, 1)])
def test_wishes_without_sense_are_refused(wish: Wish) -> None:
    with pytest.raises(UsageError):
        plan(task(QWEN_7B, "H200"), wish)


def test_when_weights_alone_exceed_the_cards_more_of_them_are_told() -> None:
    made = plan(task(QWEN_72B, "2xA10"), Wish(32768, 2))
    assert not made.fits
    assert [str(other.what) for other in made.alternatives] == ["8 x A10 instead of 2", "8 x L4 instead of 2 x A10"]
    assert "--tensor-parallel-size 8" in " ".join(made.alternatives[0].command.argv())
