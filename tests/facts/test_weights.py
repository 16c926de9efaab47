"""How weights and states split over ranks: heads replicate, vocabularies pad, experts split two ways."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.weights import Span, Weight

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"


def facts_of(name: str) -> ModelFacts:
    return read_model(json.loads((FIXTURES / f"{name}.json").read_text()))


def find(facts: ModelFacts, name: str) -> Weight:
    return next(w for w in facts.weights if w.name == name)


def test_kv_heads_replicate_past_their_count() -> None:
    qkv = find(facts_of("qwen2.5-7b"), "self_attn.qkv_proj")
    assert qkv.rank_shape(1)[1] == (28 + 4 + 4) * 128
    assert qkv.rank_shape(4)[1] == (7 + 1 + 1) * 128
    assert qkv.rank_shape(14)[1] == (2 + 1 + 1) * 128


def test_rows_and_columns_split() -> None:
    facts = facts_of("llama-3.1-8b")
    assert find(facts, "mlp.gate_up_proj").rank_shape(2) == (1, 14336, 4096)
    assert find(facts, "mlp.down_proj").rank_shape(2) == (1, 4096, 7168)
    assert find(facts, "norm0").rank_bytes(8) == 4096 * 2


def test_the_vocabulary_is_padded_to_64_rows() -> None:
    table = Weight("embed_tokens", "embedding", (Span(49155),), 1536, "vocab")
    assert table.parameters == 49155 * 1536
    assert table.rank_shape(1)[1] == 49216
    assert table.rank_shape(2)[1] == 24608


def test_experts_split_by_width_or_by_count() -> None:
    w13 = find(facts_of("qwen3-30b-a3b"), "mlp.experts.w13")
    assert w13.rank_shape(4) == (128, 384, 2048)
    assert w13.rank_shape(4, ep=4) == (32, 1536, 2048)
    assert w13.rank_bytes(4) == w13.rank_bytes(4, ep=4)


def test_a_bias_is_a_tensor_of_its_own() -> None:
    qkv = find(facts_of("qwen2.5-7b"), "self_attn.qkv_proj")
    assert qkv.rank_tensors() == (4608 * 3584 * 2, 4608 * 2)


def test_recurrent_states() -> None:
    facts = facts_of("qwen3-next-12layers")
    kinds = [layer.recurrent.kind if layer.recurrent else "full" for layer in facts.layers]
    assert kinds == ["gdn", "gdn", "gdn", "full"] * 3
    first = facts.layers[0].recurrent
    assert first is not None
    conv, ssm = first.states
    assert conv.rank_shape() == (2 * 16 * 128 + 32 * 128, 3)
    assert ssm.rank_shape(2) == (16, 128, 128)
    assert ssm.rank_bytes() == 32 * 128 * 128 * 2


def test_equal_layers_are_one_object() -> None:
    assert len({id(layer) for layer in facts_of("qwen2.5-72b").layers}) == 1
    assert len({id(layer) for layer in facts_of("gemma-3-27b-text").layers}) == 2
