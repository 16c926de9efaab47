"""Vision and audio encoders beside a decoder, held to the counts that publishers' indexes give."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.facts.layers import Tower
from trimtab.facts.model import read_model

SIGLIP = {
    "hidden_size": 1152, "image_size": 980, "intermediate_size": 4304, "num_attention_heads": 16,
    "num_hidden_layers": 27, "patch_size": 14, "model_type": "siglip_vision_model",
}  # fmt: skip
MINICPM_V_26 = {
    "architectures": ["MiniCPMV"], "model_type": "minicpmv", "version": 2.6, "query_num": 64, "vision_config": SIGLIP,
    "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 151666, "max_position_embeddings": 32768, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
WHISPER = {
    "d_model": 1280, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "encoder_layers": 32, "num_mel_bins": 128,
}  # fmt: skip
QWEN2_AUDIO = {
    "architectures": ["Qwen2AudioForConditionalGeneration"], "model_type": "qwen2_audio",
    "audio_config": {**WHISPER, "model_type": "qwen2_audio_encoder"},
    "text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032,
                    "max_position_embeddings": 8192, "torch_dtype": "bfloat16"},
}  # fmt: skip
DEEPSEEK_OCR = {
    "architectures": ["DeepseekOCRForCausalLM"], "model_type": "deepseek_vl_v2", "torch_dtype": "bfloat16",
    "projector_config": {"input_dim": 2048, "n_embed": 1280, "projector_type": "linear"},
    "vision_config": {"image_size": 1024, "mlp_ratio": 3.7362, "model_name": "deeplip_b_l", "model_type": "vision"},
    "language_config": {
        "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 1280,
        "intermediate_size": 6848, "kv_lora_rank": None, "q_lora_rank": None, "moe_intermediate_size": 896,
        "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 10, "num_experts_per_tok": 6,
        "num_hidden_layers": 12, "num_key_value_heads": 10, "first_k_dense_replace": 1, "use_mla": False,
        "v_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
    },
}  # fmt: skip
MOLMO_7B_D = {
    "architectures": ["MolmoForCausalLM"], "model_type": "molmo", "attention_layer_norm": False,
    "embedding_size": 152064, "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 37888,
    "max_position_embeddings": 4096, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "qkv_bias": True, "weight_tying": False, "tie_word_embeddings": False, "torch_dtype": "float32",
}  # fmt: skip
GEMMA_3N_E4B = {
    "architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "torch_dtype": "bfloat16",
    "text_config": {"model_type": "gemma3n_text"},
    "vision_config": {"model_type": "gemma3n_vision", "hidden_size": 2048},
    "audio_config": {"model_type": "gemma3n_audio", "hidden_size": 1536},
}  # fmt: skip
WHISPER_LARGE_V3 = {
    **WHISPER, "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "torch_dtype": "float16",
    "decoder_layers": 32, "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "vocab_size": 51866,
    "max_source_positions": 1500, "max_target_positions": 448,
}  # fmt: skip
PUBLISHED = {
    "Molmo-7B-D": (MOLMO_7B_D, 8_021_025_280),
    "MiniCPM-V-2_6": (MINICPM_V_26, 8_099_175_152),
    "Qwen2-Audio-7B": (QWEN2_AUDIO, 8_397_094_912),
    "DeepSeek-OCR": (DEEPSEEK_OCR, 3_336_106_240),
}
QWEN = {
    "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_equal_the_published_count(name: str) -> None:
    config, count = PUBLISHED[name]
    facts = read_model(config)
    assert facts.parameters == count
    assert facts.missing == ()


def towers(config: dict[str, Any]) -> dict[str, Tower]:
    facts = read_model(config)
    assert facts.missing == ()
    return {tower.kind: tower for tower in facts.towers}


def test_an_omni_model_sees_and_hears() -> None:
    vision = {"model_type": "qwen2_5_omni_vision_encoder", "depth": 32, "hidden_size": 1280, "num_heads": 16,
              "intermediate_size": 3420, "patch_size": 14, "out_hidden_size": 3584, "fullatt_block_indexes": [7],
              "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3}  # fmt: skip
    audio = {**WHISPER, "model_type": "qwen2_5_omni_audio_encoder", "output_dim": 3584}
    thinker = {"text_config": QWEN, "vision_config": vision, "audio_config": audio}
    found = towers({"architectures": ["Qwen2_5OmniModel"], "model_type": "qwen2_5_omni", "thinker_config": thinker})
    assert found.keys() == {"vision", "audio"}
    plain = towers(QWEN2_AUDIO)["audio"]
    assert {w.part for w in found["audio"].weights} == {w.part for w in plain.weights}


def test_minicpm_o_has_an_ear_more_than_minicpm_v() -> None:
    ear = {"d_model": 1024, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layers": 24}
    config = {**MINICPM_V_26, "architectures": ["MiniCPMO"], "audio_config": ear}
    assert towers(config).keys() == {"vision", "audio"}
    assert towers(config)["vision"] == towers(MINICPM_V_26)["vision"]


def test_a_cohere_tower_has_a_gated_bridge() -> None:
    text = {"model_type": "cohere2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 256000}  # fmt: skip
    config = {"architectures": ["Cohere2VisionForConditionalGeneration"], "model_type": "cohere2_vision",
              "alignment_intermediate_size": 36864, "downsample_factor": 2, "text_config": text,
              "vision_config": {**SIGLIP, "image_size": 512, "patch_size": 16}}  # fmt: skip
    bridge = {w.name: w.parameters for w in towers(config)["vision"].weights if w.part == "projector"}
    assert bridge["multi_modal_projector.linear_1"] == 36864 * (4 * 1152 + 1)
    assert bridge["multi_modal_projector.linear_2"] == 4096 * (18432 + 1)


def test_an_unsized_ear_is_said() -> None:
    config = {"architectures": ["Idefics3ForConditionalGeneration"], "model_type": "idefics3", "text_config": QWEN,
              "audio_config": {"hidden_size": 1536}}  # fmt: skip
    assert any("audio encoder" in a for a in read_model(config).assumed)


def test_phi3_vision_is_clip_without_its_last_layer_and_a_bridge() -> None:
    found = towers({
        "architectures": ["Phi3VForCausalLM"], "model_type": "phi3_v", "hidden_size": 3072, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32064,
        "max_position_embeddings": 131072, "sliding_window": 131072, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "img_processor": {"image_dim_out": 1024, "name": "clip_vision_model"},
    })  # fmt: skip
    clip_23_layers, bridge = 290_909_184, 22_034_432
    assert sum(w.parameters for w in found["vision"].weights) == clip_23_layers + bridge


def test_a_tower_that_cannot_be_sized_is_named_though_the_config_does_not_mention_it() -> None:
    config = {**QWEN, "architectures": ["Glm5NextForConditionalGeneration"], "torch_dtype": "bfloat16"}
    assert any("vision tower" in fact for fact in read_model(config).missing)


PHI4_MM = {
    "architectures": ["Phi4MMForCausalLM"], "model_type": "phi4mm", "torch_dtype": "bfloat16", "hidden_size": 3072,
    "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8,
    "vocab_size": 200064, "tie_word_embeddings": True, "max_position_embeddings": 131072, "sliding_window": 262144,
    "audio_processor": {"name": "cascades", "config": {
        "attention_dim": 1024, "attention_heads": 16, "kernel_size": 3, "linear_units": 1536, "num_blocks": 24,
        "nemo_conv_settings": {"conv_channels": 1024}, "relative_attention_bias_args": {"t5_bias_max_distance": 500}}},
}  # fmt: skip


def test_phi4_multimodal_hears_with_a_conformer_and_two_projections() -> None:
    found = towers(PHI4_MM)
    in_transformers, reaches_500_not_1000 = 466_432_256, 500 * 2 * 16
    assert sum(w.parameters for w in found["audio"].weights) == in_transformers - reaches_500_not_1000
    assert found["vision"].layers == 26


def test_gemma4_hears_with_a_conformer() -> None:
    config = {
        "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
        "text_config": {**QWEN, "model_type": "gemma4_text", "head_dim": 128}, "audio_config": {
            "model_type": "gemma4_audio", "hidden_size": 1024},
    }  # fmt: skip
    in_transformers = 304_824_608
    assert sum(w.parameters for w in towers(config)["audio"].weights) == in_transformers + 1536 * QWEN["hidden_size"]


def test_whisper_caches_the_text_and_the_audio() -> None:
    facts = read_model(WHISPER_LARGE_V3)
    assert [layer.attention.cross for layer in facts.layers[:2] if layer.attention] == [False, True]
    assert facts.kv_elements_per_token() == 32 * 2 * 1280
    assert facts.max_positions == 448


def test_gemma_3n_sees_and_hears_as_transformers_counts() -> None:
    found = towers(GEMMA_3N_E4B)
    mobilenet, its_embedder, conformer, its_other_embedder = 294_126_912, 4_460_544, 681_348_640, 3_345_408
    assert sum(w.parameters for w in found["vision"].weights) == mobilenet + its_embedder
    assert sum(w.parameters for w in found["audio"].weights) == conformer + its_other_embedder


def test_whisper_has_the_weights_that_transformers_counts() -> None:
    assert read_model(WHISPER_LARGE_V3).parameters == 1_543_490_560
