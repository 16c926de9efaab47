"""Parameter counts of defaults of config classes, held to what transformers 5.19 counts of its own modules."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.facts.model import read_model

SLIDING = ["sliding_attention"] * 3 + ["full_attention"]
LAGUNA = {
    "architectures": ["LagunaForCausalLM"], "model_type": "laguna", "hidden_size": 2048, "intermediate_size": 8192,
    "vocab_size": 100352, "num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 8,
    "head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "gating": True, "mlp_layer_types": ["dense"] + ["sparse"] * 39,
    "layer_types": ["full_attention"] * 40,
}  # fmt: skip
AFMOE = {
    "architectures": ["AfmoeForCausalLM"], "model_type": "afmoe", "vocab_size": 200192, "hidden_size": 2048,
    "intermediate_size": 6144, "moe_intermediate_size": 1408, "num_hidden_layers": 32, "num_dense_layers": 1,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 128, "num_experts": 64,
    "num_experts_per_tok": 6, "num_shared_experts": 2, "sliding_window": 1024, "layer_types": SLIDING * 8,
}  # fmt: skip
EXAONE_MOE = {
    "architectures": ["ExaoneMoeForCausalLM"], "model_type": "exaone_moe", "vocab_size": 102400, "hidden_size": 4096,
    "intermediate_size": 16384, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "moe_intermediate_size": 1024, "num_experts": 64, "num_experts_per_tok": 8, "num_shared_experts": 1,
    "first_k_dense_replace": 1, "sliding_window": 4096, "layer_types": SLIDING * 8, "tie_word_embeddings": False,
}  # fmt: skip
MELLUM = {
    "architectures": ["MellumForCausalLM"], "model_type": "mellum", "vocab_size": 98304, "hidden_size": 2304,
    "num_hidden_layers": 28, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "moe_intermediate_size": 896, "num_experts": 64, "num_experts_per_tok": 8, "intermediate_size": 7168,
    "sliding_window": 1024, "layer_types": SLIDING * 7, "tie_word_embeddings": False,
}  # fmt: skip
GLM_OCR = {
    "architectures": ["GlmOcrForConditionalGeneration"], "model_type": "glm_ocr",
    "text_config": {"model_type": "glm_ocr_text", "tie_word_embeddings": False},
    "vision_config": {"model_type": "glm_ocr_vision", "hidden_size": 1024, "depth": 24, "num_heads": 16,
                      "intermediate_size": 4096, "out_hidden_size": 1536, "patch_size": 14, "image_size": 336,
                      "temporal_patch_size": 2, "spatial_merge_size": 2, "attention_bias": True},
}  # fmt: skip
COUNTED: dict[str, tuple[dict[str, Any], int]] = {
    "laguna": (LAGUNA, 33_189_975_808),
    "afmoe": (AFMOE, 19_232_600_000),
    "exaone_moe with its 1,984 correction biases": (EXAONE_MOE, 28_550_639_616 + 1_984),
    "mellum": (MELLUM, 12_149_923_072),
    "glm_ocr": (GLM_OCR, 807_479_808),
}


@pytest.mark.parametrize("name", COUNTED)
def test_as_many_as_transformers_counts(name: str) -> None:
    config, count = COUNTED[name]
    facts = read_model(config)
    assert not facts.missing
    assert facts.parameters == count


def test_a_longcat_block_caches_twice() -> None:
    facts = read_model({
        "architectures": ["LongcatFlashForCausalLM"], "model_type": "longcat_flash", "hidden_size": 6144,
        "num_layers": 2, "num_attention_heads": 64, "vocab_size": 131072, "ffn_hidden_size": 12288,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_routed_experts": 512, "zero_expert_num": 256, "moe_topk": 12, "expert_ffn_hidden_size": 2048,
    })  # fmt: skip
    assert facts.num_layers == 4
    assert facts.kv_elements_per_token() == 4 * 576
    assert [layer.moe is not None for layer in facts.layers] == [False, True, False, True]
    router = next(w for w in facts.layers[1].weights if w.name.endswith("classifier"))
    assert router.rows == 768


LING: dict[str, Any] = {
    "hidden_size": 2048, "num_hidden_layers": 14, "num_attention_heads": 16, "head_dim": 128, "vocab_size": 1024,
    "intermediate_size": 4096, "num_experts": 16, "num_experts_per_tok": 4, "num_shared_experts": 1,
    "moe_intermediate_size": 512, "first_k_dense_replace": 1, "layer_group_size": 6, "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "short_conv_kernel_size": 4, "tie_word_embeddings": False,
}  # fmt: skip


def test_ling_attends_once_a_group() -> None:
    def full(architecture: str) -> list[int]:
        layers = read_model({**LING, "architectures": [architecture]}).layers
        return [i for i, layer in enumerate(layers) if layer.attention]

    assert full("BailingMoeV2_5ForCausalLM") == [5, 11]
    assert full("BailingMoeV3ForCausalLM") == [5, 11, 12, 13]


def test_a_classifier_has_the_body_of_its_generating_twin() -> None:
    body = {k: v for k, v in MELLUM.items() if k != "architectures"}
    for name in ("MistralForSequenceClassification", "MptForCausalLM"):
        assert not any("architecture" in m for m in read_model({**body, "architectures": [name]}).missing)
