"""Drafts beside the target: which method runs them, and what they weigh."""

from __future__ import annotations

import pytest

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.drafting import draft_method, read_draft, with_draft
from trimtab.facts.layers import Draft

TARGET = find_model("meta-llama/Llama-3.1-8B-Instruct").facts()
EAGLE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "num_hidden_layers": 1,
    "max_position_embeddings": 2048, "torch_dtype": "float16",
}  # fmt: skip


def weights(draft: Draft) -> dict[str, int]:
    return {w.name: w.parameters for w in (*draft.weights, *(w for x in draft.layers for w in x.weights))}


@pytest.mark.parametrize(
    ("given", "model", "method"),
    [
        (None, "yuhuili/EAGLE-LLaMA3-Instruct-8B", "eagle"),
        (None, "AngelSlim/Qwen3-8B_eagle3", "eagle3"),
        (None, "Qwen/Qwen3-0.6B", "draft_model"),
        (None, "[ngram]", "ngram"),
        ("deepseek_mtp", None, "mtp"),
        ("eagle3", "any/name", "eagle3"),
        ("draft_model", "org/Eagle3-head", "eagle3"),
        ("suffix", None, "suffix"),
    ],
)
def test_the_method_is_the_one_given_or_by_the_name(given: str | None, model: str | None, method: str) -> None:
    assert draft_method(given, model) == method


def test_a_medusa_is_known_by_its_type() -> None:
    assert draft_method(None, "org/heads", {"model_type": "medusa"}) == "medusa"


def test_a_model_as_draft_weighs_what_it_weighs() -> None:
    config = find_model("meta-llama/Llama-3.2-1B-Instruct").config
    draft = read_draft(config, "draft_model", 5, TARGET)
    assert draft is not None
    assert sum(weights(draft).values()) >= len(draft.layers)
    layers = sum(w.parameters for layer in draft.layers for w in layer.weights)
    assert layers + sum(w.parameters for w in draft.weights) == 1_235_814_400


def test_a_plain_config_becomes_an_eagle_head() -> None:
    eagle = read_draft(EAGLE, "eagle", 2, TARGET)
    eagle3 = read_draft({**EAGLE, "draft_vocab_size": 32000}, "eagle3", 2, TARGET)
    assert eagle is not None
    assert eagle3 is not None
    assert weights(eagle)["fc"] == 4096 * 2 * 4096
    assert weights(eagle3)["fc"] == 4096 * 3 * 4096
    assert weights(eagle3)["lm_head"] == 32000 * 4096


def test_a_head_in_the_speculators_format() -> None:
    config = {
        "speculators_model_type": "eagle3", "draft_vocab_size": 32000, "architectures": ["Eagle3Speculator"],
        "transformer_layer_config": EAGLE,
    }  # fmt: skip
    draft = read_draft(config, "eagle3", 3, TARGET)
    assert draft is not None
    assert weights(draft)["lm_head"] == 32000 * 4096


def test_medusa_has_a_head_per_token() -> None:
    draft = read_draft({"model_type": "medusa", "medusa_num_heads": 3, "medusa_num_layers": 1}, "medusa", 4, TARGET)
    assert draft is not None
    assert sum(weights(draft).values()) == 4 * (4096 * 4096 + 128256 * 4096)


def test_what_is_not_known_is_none() -> None:
    assert read_draft({"architectures": ["NobodyKnows"], "hidden_size": 64}, "draft_model", 2, TARGET) is None
    assert read_draft(EAGLE, "dflash", 2, TARGET) is None


def test_the_draft_takes_the_place_of_a_shipped_one() -> None:
    target = find_model("deepseek-ai/DeepSeek-V3").facts()
    shipped = target.drafts[0]
    other = Draft("eagle", ())
    assert with_draft(target, other).drafts == (shipped, other)
    assert with_draft(target, Draft(shipped.method, ())).drafts == (Draft(shipped.method, ()),)
