"""Models of a decoder and a tower: which decoder is inside, and which tower is beside it."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.facts.architectures import towers
from trimtab.facts.architectures.defaults import defaults_for
from trimtab.facts.keys import Keys
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
    "Mistral3ForConditionalGeneration": (None, towers.pixtral_vision),
    "PixtralForConditionalGeneration": ("MistralForCausalLM", towers.pixtral_vision),
    "LlavaForConditionalGeneration": (None, towers.llava_vision),
    "LlavaNextForConditionalGeneration": (None, towers.llava_vision),
    "InternVLChatModel": (None, towers.intern_vision),
    "InternVLForConditionalGeneration": (None, towers.intern_vision),
    "Glm4vForConditionalGeneration": ("Glm4ForCausalLM", towers.glm4v_vision),
    "Glm4vMoeForConditionalGeneration": ("Glm4MoeForCausalLM", towers.glm4v_vision),
    "Llama4ForConditionalGeneration": ("Llama4ForCausalLM", towers.llama4_vision),
    "Gemma3nForConditionalGeneration": ("Gemma3nForCausalLM", None),
    "Gemma4ForConditionalGeneration": ("Gemma4ForCausalLM", towers.gemma4_vision),
    "Glm5NextForConditionalGeneration": ("Glm5NextForCausalLM", None),
    "Step3VLForConditionalGeneration": ("Step3TextForCausalLM", None),
    "Step3p7ForConditionalGeneration": ("Step3p5ForCausalLM", None),
    "Phi3VForCausalLM": ("Phi3ForCausalLM", None),
    "Phi4MMForCausalLM": ("Phi3ForCausalLM", None),
    "MiniCPMO": ("Qwen2ForCausalLM", None),
    "Idefics3ForConditionalGeneration": (None, towers.idefics3_vision),
    "SmolVLMForConditionalGeneration": (None, towers.idefics3_vision),
    "PaliGemmaForConditionalGeneration": (None, towers.paligemma_vision),
    "AyaVisionForConditionalGeneration": (None, None),
    "Cohere2VisionForConditionalGeneration": (None, None),
    "DeepseekVLV2ForCausalLM": (None, None),
    "Qwen2AudioForConditionalGeneration": (None, None),
    "MllamaForConditionalGeneration": ("MllamaForCausalLM", towers.mllama_vision),
    "MiMoV2OmniForCausalLM": ("MiMoV2ForCausalLM", None),
    "KimiVLForConditionalGeneration": ("DeepseekV3ForCausalLM", towers.moon_vision),
    "KimiK25ForConditionalGeneration": ("DeepseekV3ForCausalLM", None),
    "MiniCPMV": (None, None),
    "Qwen2_5OmniModel": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen2_5OmniForConditionalGeneration": ("Qwen2ForCausalLM", towers.qwen_vision),
    "Qwen3OmniMoeForConditionalGeneration": ("Qwen3MoeForCausalLM", towers.qwen_vision),
}
"""Architecture -> its decoder (None: as the nested config says) and its tower's builder (None: size not known)."""

TEXT_TYPES = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "mixtral": "MixtralForCausalLM",
    "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
    "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3_text": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM", "internlm2": "InternLM2ForCausalLM", "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM", "gpt_oss": "GptOssForCausalLM", "deepseek_v3": "DeepseekV3ForCausalLM",
    "ministral3": "Ministral3ForCausalLM", "mistral4": "Mistral4ForCausalLM", "glm4": "Glm4ForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM", "kimi_k2": "DeepseekV3ForCausalLM", "deepseek_v2": "DeepseekV2ForCausalLM",
}  # fmt: skip
"""Decoders by the model_type of a nested config that has no `architectures`."""


def decoder_architecture(architecture: str, text: Keys) -> str:
    """The decoder inside a multimodal architecture; the architecture itself when it is a plain decoder."""
    if architecture not in WRAPPERS:
        return architecture
    inner = WRAPPERS[architecture][0]
    if inner is not None:
        return inner
    names = text.texts("architectures")
    if names and names[0] != architecture:
        return names[0]
    return TEXT_TYPES.get(text.text("model_type"), architecture)


def build_towers(top: Keys, architecture: str, text_hidden: int) -> tuple[Tower, ...]:
    """The towers of a multimodal architecture; one that cannot be sized is named in `missing`."""
    if architecture not in WRAPPERS:
        return ()
    builder = WRAPPERS[architecture][1]
    nested = (top.sub("thinker_config") or top).sub("vision_config", "vit_config")
    if nested is None:
        return ()
    if builder is None:
        top.missing.append(f"the vision tower's weights ({architecture})")
        return ()
    model_type = nested.text("model_type") or top.text("model_type")
    defaults = {**defaults_for(model_type + "_vision"), **defaults_for(model_type)}
    return (builder(top, nested.with_defaults(defaults), text_hidden),)
