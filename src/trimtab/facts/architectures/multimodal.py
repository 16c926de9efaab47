"""Models of a decoder and a tower: which decoder is inside, and which tower is beside it."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.facts.architectures import audio, bridged, clips, speech, towers
from trimtab.facts.architectures.defaults import defaults_for
from trimtab.facts.keys import BESIDE, Keys
from trimtab.facts.layers import Tower

TowerBuilder = Callable[[Keys, Keys, int], Tower]
WRAPPERS: dict[str, tuple[str | None, TowerBuilder | None]] = {
    "Gemma3ForConditionalGeneration": ("Gemma3ForCausalLM", towers.gemma3_vision),
    "Qwen2VLForConditionalGeneration": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen2_5_VLForConditionalGeneration": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen3VLForConditionalGeneration": ("Qwen3ForCausalLM", towers.qwen_vision),
    "Qwen3VLMoeForConditionalGeneration": ("Qwen3MoeForCausalLM", towers.qwen_vision),
    "Qwen3_5ForConditionalGeneration": ("Qwen3_5ForCausalLM", towers.qwen_vision),
    "Qwen3_5MoeForConditionalGeneration": ("Qwen3_5MoeForCausalLM", towers.qwen_vision),
    "Qwen4ExpForConditionalGeneration": ("Qwen4ExpForCausalLM", towers.qwen_vision),
    "Mistral3ForConditionalGeneration": (None, towers.pixtral_vision),
    "LightOnOCRForConditionalGeneration": (None, towers.pixtral_vision),
    "PixtralForConditionalGeneration": ("MistralForCausalLM", towers.pixtral_vision),
    "LlavaForConditionalGeneration": (None, towers.llava_vision),
    "LlavaNextForConditionalGeneration": (None, towers.llava_vision),
    "InternVLChatModel": (None, towers.intern_vision),
    "QianfanOCRForConditionalGeneration": (None, towers.intern_vision),
    "InternVLForConditionalGeneration": (None, towers.intern_vision),
    "Glm4vForConditionalGeneration": ("Glm4ForCausalLM", towers.glm4v_vision),
    "Glm4vMoeForConditionalGeneration": ("Glm4MoeForCausalLM", towers.glm4v_vision),
    "Llama4ForConditionalGeneration": ("Llama4ForCausalLM", towers.llama4_vision),
    "Gemma3nForConditionalGeneration": ("Gemma3nForCausalLM", clips.gemma3n_vision),
    "Gemma4ForConditionalGeneration": ("Gemma4ForCausalLM", towers.gemma4_vision),
    "Glm5NextForConditionalGeneration": ("Glm5NextForCausalLM", None),
    "Step3VLForConditionalGeneration": ("Step3TextForCausalLM", bridged.step3_vision),
    "StepVLForConditionalGeneration": (None, bridged.perception_encoder),
    "Step3p7ForConditionalGeneration": ("Step3p5ForCausalLM", bridged.perception_encoder),
    "Exaone4_5_ForConditionalGeneration": ("Exaone4ForCausalLM", towers.qwen_vision),
    "OpenCUAForConditionalGeneration": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Lfm2VlForConditionalGeneration": (None, bridged.lfm2_vision),
    "Gemma4UnifiedForConditionalGeneration": ("Gemma4ForCausalLM", bridged.gemma4_patches),
    "GlmOcrForConditionalGeneration": ("Glm4ForCausalLM", towers.glm_ocr_vision),
    "Qwen3ASRForConditionalGeneration": ("Qwen3ForCausalLM", None),
    "Qwen3ASRRealtimeGeneration": ("Qwen3ForCausalLM", None),
    "Qwen3VLForSequenceClassification": ("Qwen3ForCausalLM", towers.qwen_vision),
    "InternS1ForConditionalGeneration": (None, towers.intern_vision),
    "LlavaNextVideoForConditionalGeneration": (None, towers.llava_vision),
    "LlavaOnevisionForConditionalGeneration": (None, towers.llava_vision),
    "MiniMaxM3SparseForConditionalGeneration": ("MiniMaxM3SparseForCausalLM", bridged.minimax_m3_vision),
    "KimiK3ForConditionalGeneration": ("KimiLinearForCausalLM", bridged.kimi_k25_vision),
    "Phi3VForCausalLM": ("Phi3ForCausalLM", clips.phi3_vision),
    "MolmoForCausalLM": ("MolmoForCausalLM", clips.molmo_vision),
    "Phi4MMForCausalLM": ("Phi3ForCausalLM", clips.phi4_vision),
    "MiniCPMO": ("Qwen2ForCausalLM", bridged.minicpm_vision),
    "Idefics3ForConditionalGeneration": (None, towers.idefics3_vision),
    "SmolVLMForConditionalGeneration": (None, towers.idefics3_vision),
    "PaliGemmaForConditionalGeneration": (None, towers.paligemma_vision),
    "AyaVisionForConditionalGeneration": (None, bridged.aya_vision),
    "Cohere2VisionForConditionalGeneration": (None, bridged.aya_vision),
    "DeepseekVLV2ForCausalLM": (None, bridged.deepseek_vl2_vision),
    "DeepseekOCRForCausalLM": (None, bridged.deepseek_ocr_vision),
    "Qwen2AudioForConditionalGeneration": (None, None),
    "VoxtralForConditionalGeneration": (None, None),
    "MllamaForConditionalGeneration": ("MllamaForCausalLM", towers.mllama_vision),
    "MiMoV2OmniForCausalLM": ("MiMoV2ForCausalLM", bridged.mimo_vision),
    "KimiVLForConditionalGeneration": ("DeepseekV3ForCausalLM", towers.moon_vision),
    "KimiK25ForConditionalGeneration": ("DeepseekV3ForCausalLM", bridged.kimi_k25_vision),
    "MiniCPMV": (None, bridged.minicpm_vision),
    "Qwen2_5OmniModel": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen2_5OmniForConditionalGeneration": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen3OmniMoeForConditionalGeneration": ("Qwen3MoeForCausalLM", towers.qwen_vision),
}
"""Architecture -> its decoder (None: as the nested config says) and its tower's builder (None: size not known)."""

ALWAYS_SEES = ("DeepseekOCRForCausalLM", "Phi3VForCausalLM", "MolmoForCausalLM", "Phi4MMForCausalLM")
"""Architectures whose tower is of one size, whatever their config says of it."""
HEARING: dict[str, TowerBuilder] = {
    "Qwen2AudioForConditionalGeneration": audio.qwen2_audio,
    "Qwen2_5OmniModel": audio.qwen25_omni_audio,
    "Qwen2_5OmniForConditionalGeneration": audio.qwen25_omni_audio,
    "Qwen3OmniMoeForConditionalGeneration": audio.qwen3_omni_audio,
    "MiniCPMO": audio.minicpmo_audio,
    "VoxtralForConditionalGeneration": audio.voxtral_audio,
    "Gemma3nForConditionalGeneration": speech.gemma3n_audio,
    "Gemma4UnifiedForConditionalGeneration": speech.gemma4_frames,
    "Qwen3ASRForConditionalGeneration": audio.qwen3_omni_audio,
    "Qwen3ASRRealtimeGeneration": audio.qwen3_omni_audio,
    "Gemma4ForConditionalGeneration": speech.gemma4_audio,
    "Phi4MMForCausalLM": speech.phi4_audio,
    "MiMoV2OmniForCausalLM": speech.mimo_audio,
}
"""Architecture -> the builder of its audio encoder."""

TEXT_TYPES = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "mixtral": "MixtralForCausalLM",
    "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
    "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3_text": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM", "internlm2": "InternLM2ForCausalLM", "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM", "gpt_oss": "GptOssForCausalLM", "deepseek_v3": "DeepseekV3ForCausalLM",
    "ministral3": "Ministral3ForCausalLM", "mistral4": "Mistral4ForCausalLM", "glm4": "Glm4ForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM", "kimi_k2": "DeepseekV3ForCausalLM", "deepseek_v2": "DeepseekV2ForCausalLM",
    "lfm2": "Lfm2ForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM", "granite": "GraniteForCausalLM",
    "smollm3": "SmolLM3ForCausalLM", "hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM",
}  # fmt: skip
"""Decoders by the model_type of a nested config that has no `architectures`."""


def decoder_architecture(architecture: str, text: Keys) -> str:
    """The decoder inside a multimodal architecture; the architecture itself when it is a plain decoder."""
    if architecture not in WRAPPERS:
        return architecture
    if architecture in BY_VERSION:
        return BY_VERSION[architecture].get(_version(text), architecture)
    inner = WRAPPERS[architecture][0]
    if inner is not None:
        return inner
    names = text.texts("architectures")
    if names and names[0].startswith("DeepseekV2") and not text.has("kv_lora_rank"):
        return "DeepseekForCausalLM"  # deepseek_v2.py: without a latent each head keeps its keys and values
    if names and names[0] != architecture:
        return names[0]
    return TEXT_TYPES.get(text.text("model_type"), architecture)


BY_VERSION: dict[str, dict[str, str]] = {
    "MiniCPMV": {"": "LlamaForCausalLM", "2.5": "LlamaForCausalLM", "2.6": "Qwen2ForCausalLM",
                 "4.0": "LlamaForCausalLM", "4.5": "Qwen3ForCausalLM"},
    "MiniCPMO": {"": "Qwen2ForCausalLM", "2.6": "Qwen2ForCausalLM", "4.5": "Qwen3ForCausalLM"},
}  # fmt: skip
"""The decoder by the config's `version` (minicpmv.py, minicpmo.py); 2.0 has another tower."""


def _version(keys: Keys) -> str:
    """A config's `version`, given as text or as a number."""
    value = keys.config.get("version")
    return str(value) if isinstance(value, str | int | float) else ""


def build_towers(top: Keys, architecture: str, text_hidden: int) -> tuple[Tower, ...]:
    """The towers of a multimodal architecture; one that cannot be sized is named in `missing`."""
    if architecture not in WRAPPERS:
        return ()
    outer = top.sub("thinker_config") or top
    seen = _tower(outer, outer.sub("vision_config", "vit_config"), WRAPPERS[architecture][1], architecture, text_hidden)
    if seen is None and architecture in ALWAYS_SEES:
        seen = _tower(outer, Keys({}), WRAPPERS[architecture][1], architecture, text_hidden)
    elif seen is None and WRAPPERS[architecture][1] is None and architecture not in HEARING:
        outer.missing.append(f"{BESIDE}the vision tower's weights ({architecture})")
    heard = _tower(
        outer,
        outer.sub("audio_config", "audio_processor"),
        HEARING.get(architecture),
        architecture,
        text_hidden,
        "audio",
    )
    return tuple(tower for tower in (seen, heard) if tower is not None)


def _tower(
    outer: Keys, nested: Keys | None, builder: TowerBuilder | None, architecture: str, text_hidden: int,
    kind: str = "vision",
) -> Tower | None:  # fmt: skip
    if nested is None:
        return None
    if builder is None and kind == "audio":
        outer.assumed.append(f"the audio encoder of {architecture} is not counted: its size is not known")
        return None
    if builder is None:
        return None
    model_type = nested.text("model_type") or outer.text("model_type")
    defaults = {**defaults_for(f"{model_type}_{kind}"), **defaults_for(model_type)}
    return builder(outer, nested.with_defaults(defaults), text_hidden)
