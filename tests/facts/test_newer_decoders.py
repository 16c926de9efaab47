"""Decoders that few other models are like: searched layers, picked blocks, gated latents."""

from __future__ import annotations

from typing import Any

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import read_model

LLAMA_70B: dict[str, Any] = {
    "architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas", "torch_dtype": "bfloat16",
    "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 3, "vocab_size": 128256,
    "num_key_value_heads": None, "intermediate_size": None, "max_position_embeddings": 131072,
}  # fmt: skip
FULL = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}}
NO_ATTENTION = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.0, "no_op": False}}
NO_FFN = {"attention": {"n_heads_in_group": 16, "no_op": False}, "ffn": {"ffn_mult": None, "no_op": True}}


def test_searched_layers_lack_attention_or_mlp() -> None:
    facts = read_model({**LLAMA_70B, "block_configs": [FULL, NO_ATTENTION, NO_FFN]})
    assert not facts.missing
    assert [layer.intermediate for layer in facts.layers] == [28672, 5632, 0]
    assert [layer.attention.kv_heads if layer.attention else 0 for layer in facts.layers] == [8, 0, 4]
    assert facts.kv_elements_per_token() == (8 + 4) * 2 * 128


def test_searched_layers_that_are_not_listed_are_missing() -> None:
    assert "block_configs" in read_model({**LLAMA_70B, "block_configs": [FULL]}).missing
    assert read_model({**LLAMA_70B, "block_configs": [FULL, None, 3]}).missing


def test_super_49b_has_49_9_billion_weights() -> None:
    assert find_model("nvidia/Llama-3_3-Nemotron-Super-49B-v1").facts().parameters == 49_867_145_216


def test_kimi_k3_has_full_rank_gates_and_a_narrow_width_for_its_experts() -> None:
    facts = find_model("moonshotai/Kimi-K3").facts()
    first_mla = next(layer for layer in facts.layers if layer.attention and layer.moe)
    gate = next(w for w in first_mla.weights if w.name == "self_attn.g_proj")
    assert (gate.rows, gate.into, gate.split) == (96 * 128, 7168, "rows")
    assert first_mla.moe is not None
    assert first_mla.moe.latent == 3584
    assert sum(1 for layer in facts.layers if layer.recurrent) == 69
    assert 2.77e12 < facts.parameters < 2.78e12


def test_minimax_m3_caches_an_index_key_in_16_bit() -> None:
    facts = find_model("MiniMaxAI/MiniMax-M3").facts()
    picking = [layer.attention for layer in facts.layers if layer.attention and layer.attention.indexer]
    assert len(picking) == 57
    assert picking[0].indexer is not None
    assert (picking[0].indexer.element, picking[0].indexer.top_k) == ("kv", 2048)
    qkv = next(w for w in facts.layers[3].weights if w.name.endswith("qkv_proj"))
    assert qkv.rank_shape(tp=8)[1] == (64 // 8 + 1 + 1 + 1 + 1) * 128


def test_sliding_layers_named_by_letters() -> None:
    """LG AI Research writes the pattern as letters, local and global."""
    exaone = {"architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_size": 64, "vocab_size": 128,
              "num_hidden_layers": 5, "num_attention_heads": 4, "intermediate_size": 128, "sliding_window": 32,
              "sliding_window_pattern": "LLLG"}  # fmt: skip
    layers = read_model(exaone).layers
    assert [layer.attention.window for layer in layers if layer.attention] == [32, 32, 32, None, 32]
