"""Drafts in the budget: their weights, what they share with the target, and the layers that they cache."""

from __future__ import annotations

import pytest

from trimtab.engine.command import LaunchCommand
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.drafting import read_draft, with_draft
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory import Budget, Card, budget, given_of, release, resolve
from trimtab.plan.memory.launch import speculation_of

GIB = 1 << 30
CARDS = [Card("H100", 79.2, 9.0)] * 8


def command(words: str) -> LaunchCommand:
    return LaunchCommand.from_argv(["vllm", "serve", "m", *words.split()])


def predict(model: ModelFacts, words: str, version: str = "0.26.0") -> Budget:
    return budget(resolve(given_of(command(words)), release(version), model, CARDS), model, CARDS)


def draft_gib(report: Budget) -> float:
    return float(str(report.tightest.weights.inputs.get("draft_gib", 0.0)))


def test_a_draft_model_is_held_whole_and_cached() -> None:
    target = find_model("Qwen/Qwen3-8B").facts()
    config = find_model("Qwen/Qwen3-0.6B").config
    draft = read_draft(config, "draft_model", 5, target)
    assert draft is not None
    words = '--speculative-config {"model":"Qwen/Qwen3-0.6B","num_speculative_tokens":5}'
    without, alone = predict(target, words), predict(target, "")
    report = predict(with_draft(target, draft), words)
    assert draft_gib(report) == pytest.approx(596_049_920 * 2 / GIB, abs=0.01)
    assert report.kv_bytes_per_token == alone.kv_bytes_per_token * 64 / 36
    assert any("not reckoned with" in str(a) for a in without.assumptions)
    assert not any("draft" in str(a) for a in report.assumptions)


def test_mtp_shares_embedding_and_output_with_the_target_from_0_16() -> None:
    model = find_model("deepseek-ai/DeepSeek-V3").facts()
    words = '--tensor-parallel-size 8 --speculative-config {"method":"deepseek_mtp","num_speculative_tokens":1}'
    vocabulary = 129280 * 7168 * 2 / 8 / GIB
    before, after = predict(model, words, "0.15.1"), predict(model, words, "0.16.0")
    assert draft_gib(before) - draft_gib(after) == pytest.approx(vocabulary, rel=0.01)


def test_a_pipeline_keeps_the_draft_s_embedding() -> None:
    model = find_model("deepseek-ai/DeepSeek-V3").facts()
    words = '--speculative-config {"method":"mtp","num_speculative_tokens":1} --tensor-parallel-size'
    whole, cut = predict(model, f"{words} 8"), predict(model, f"{words} 4 --pipeline-parallel-size 2")
    held = [float(str(r.weights.inputs.get("draft_gib", 0.0))) for r in cut.ranks]
    assert max(held) > 2 * draft_gib(whole)  # a part of the whole draft is on every rank, so less than twice


@pytest.mark.parametrize(
    "words",
    [
        '--speculative-config {"model":"d","num_speculative_tokens":3,"draft_tensor_parallel_size":1}',
        "--speculative-config.model d --speculative-config.num_speculative_tokens 3"
        " --speculative-config.draft_tensor_parallel_size 1",
        "--speculative-model d --num-speculative-tokens 3 --speculative-draft-tensor-parallel-size 1",
    ],
)
def test_every_spelling_of_the_speculation(words: str) -> None:
    found = speculation_of(command(words))
    assert found == {"model": "d", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}


def test_the_asked_ranks_of_a_draft_are_said_to_be_all() -> None:
    model = find_model("deepseek-ai/DeepSeek-V3").facts()
    words = '{"method":"mtp","num_speculative_tokens":1,"draft_tensor_parallel_size":1}'
    report = predict(model, f"--tensor-parallel-size 8 --speculative-config {words}")
    assert any("all tensor ranks" in str(a) for a in report.assumptions)
