"""Layers that speculative decoding adds: in the checkpoint (MTP) or in one of their own (EAGLE)."""

from __future__ import annotations

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import read_model

LLAMA_8B = {
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "num_hidden_layers": 1, "max_position_embeddings": 2048, "model_type": "llama",
    "torch_dtype": "float16",
}  # fmt: skip


def test_mtp_layers_are_drafts_and_not_in_the_model() -> None:
    facts = find_model("deepseek-ai/DeepSeek-V3").facts()
    assert facts.parameters == 671_026_419_200
    draft = facts.drafts[0]
    own = sum(w.parameters for layer in draft.layers for w in layer.weights) + sum(w.parameters for w in draft.weights)
    assert facts.parameters + own == 684_489_845_504


def test_mtp_layers_are_packed_with_the_model() -> None:
    (layer,) = find_model("deepseek-ai/DeepSeek-V3").facts().drafts[0].layers
    schemes = {w.name: w.scheme.name for w in layer.weights}
    assert schemes["mlp.experts.w13"] == "fp8 block"
    assert schemes["eh_proj"] == "none"


def test_eagle3() -> None:
    facts = read_model({**LLAMA_8B, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000})
    names = {w.name: w for w in facts.weights}
    assert names["fc"].into == 3 * 4096
    assert names["self_attn.qkv_proj"].into == 2 * 4096
    assert names["lm_head"].rows == 32000
    assert facts.kv_elements_per_token() == 2 * 8 * 128
    assert facts.missing == ()


def test_eagle1_has_the_output_matrix_of_its_target() -> None:
    facts = read_model({**LLAMA_8B, "architectures": ["EagleLlamaForCausalLM"]})
    assert facts.head == ()
    assert next(w for w in facts.weights if w.name == "fc").into == 2 * 4096
