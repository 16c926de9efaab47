"""What read_model makes of real configs: the anchors that other estimators get wrong, and unusable input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.errors import ModelError
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import ModelFacts, read_model

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
GIB = 1 << 30


def facts_of(name: str) -> ModelFacts:
    return read_model(json.loads((FIXTURES / f"{name}.json").read_text()))


PARAMETERS = {
    "qwen2.5-72b": 72_706_203_648,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-7b": 7_615_616_512,
    "llama-3.1-8b": 8_030_261_248,
    "mistral-7b-v0.1": 7_241_732_096,
    "qwen3-30b-a3b": 30_532_122_624,
    "deepseek-v2-lite": 15_706_484_224,
    "gpt-oss-20b": 20_914_757_184,
    "gemma-3-27b-text": 27_009_346_304,
}
"""Counts that the models' publishers state (Gemma's without its vision tower)."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    facts = facts_of(name)
    assert facts.parameters == PARAMETERS[name]
    assert facts.missing == ()


@pytest.mark.parametrize(
    ("name", "gib"), [("qwen2.5-72b", 135.43), ("qwen3-30b-a3b", 56.87), ("deepseek-v2-lite", 29.26)]
)
def test_stored_weights(name: str, gib: float) -> None:
    assert round(facts_of(name).stored_bytes / GIB, 2) == gib


@pytest.mark.parametrize(
    ("name", "kib"), [("qwen2.5-72b", 320), ("qwen3-30b-a3b", 96), ("deepseek-v2-lite", 30.375), ("gpt-oss-20b", 48)]
)
def test_kv_per_token(name: str, kib: float) -> None:
    assert facts_of(name).kv_elements_per_token() * 2 / 1024 == kib


def test_kv_per_token_beyond_the_window() -> None:
    assert facts_of("gpt-oss-20b").kv_elements_per_token(beyond_window=True) * 2 / 1024 == 24
    gemma = facts_of("gemma-3-27b-text")
    assert gemma.kv_elements_per_token(beyond_window=True) * 2 / 1024 == 80
    inside = gemma.kv_elements_per_token() - gemma.kv_elements_per_token(beyond_window=True)
    assert inside * 2 * 1024 / (1 << 20) == 416


def test_the_generation_config_limits_answers() -> None:
    config = json.loads((FIXTURES / "qwen2.5-7b.json").read_text())
    assert read_model(config, generation_config={"max_new_tokens": 2048}).max_new_tokens == 2048
    assert read_model(config).max_new_tokens is None
    with pytest.raises(ModelError, match="max_new_tokens = 'many'"):
        read_model(config, generation_config={"max_new_tokens": "many"})


def test_a_tie_said_on_top_counts_more_than_the_inner_default() -> None:
    config = dict(find_model("Qwen/Qwen3-VL-30B-A3B-Instruct").config)
    inner = {k: v for k, v in config["text_config"].items() if k != "tie_word_embeddings"}
    assert not read_model({**config, "text_config": inner, "tie_word_embeddings": False}).tied_embeddings
    assert read_model({**config, "text_config": inner, "tie_word_embeddings": True}).tied_embeddings
