"""What sets one decoder architecture apart from a plain Llama, as data: biases, norms, windows, ties, experts."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace


class MoeTraits(msgspec.Struct, frozen=True):
    """How an architecture's experts differ from Mixtral's: biases and the shared expert's gate."""

    bias: bool = False
    router_bias: bool = False
    correction_bias: bool = False
    shared_gate: bool = False


class Traits(msgspec.Struct, frozen=True):
    """Differences from Llama. A bias of None is read from the config (`attention_bias`, `mlp_bias`)."""

    qkv_bias: bool | None = None
    o_bias: bool | None = None
    mlp_bias: bool | None = None
    gated: bool = True
    qk_norm: Literal["", "head", "full", "heads", "flagged"] = ""
    """Norms of queries and keys: one vector per head dim, one over all heads, per head, or as `use_qk_norm` says."""
    norms: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    learned_positions: int | None = None
    """Rows added to max_positions in a learned position table; None: rotary or none."""
    rotary: bool = True
    tied: bool = False
    """When neither the config nor its class says whether the output matrix is the embedding."""
    window: Literal["none", "all", "flagged", "typed"] = "none"
    """Which layers slide: none, all when `sliding_window` is set, all when `use_sliding_window`, or by layer."""
    full_every: int = 0
    """With "typed" and no `layer_types`: every n-th layer sees all."""
    intermediate_factor: int | None = None
    head_bias: bool = False
    moe: MoeTraits | None = None
    mla: bool = False
    latent_cache: bool = True
    """With `mla`: the latent is what is cached, not the keys and values made from it."""
    sinks: bool = False
    """One learned sink logit per head."""


LLAMA = Traits()
QWEN2 = Traits(qkv_bias=True, o_bias=False, window="flagged")
QWEN3 = Traits(o_bias=None, qk_norm="head", window="flagged")
GEMMA = Traits(tied=True)
GPT = Traits(qkv_bias=True, o_bias=True, mlp_bias=True, gated=False, norm_bias=True, tied=True, rotary=False)
DEEPSEEK = Traits(mla=True, moe=MoeTraits(correction_bias=True))
MIXTRAL = Traits(window="all", moe=MoeTraits())
GLM4_MOE = Traits(o_bias=False, qk_norm="flagged", moe=MoeTraits(correction_bias=True))

DECODERS: dict[str, Traits] = {
    **dict.fromkeys(
        ("LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel", "YiForCausalLM", "InternLMForCausalLM",
         "AquilaForCausalLM", "AquilaModel", "XverseForCausalLM", "InternLM2ForCausalLM", "InternLM3ForCausalLM",
         "SolarForCausalLM", "ExaoneForCausalLM", "TeleChat3ForCausalLM", "BaichuanForCausalLM", "BaiChuanForCausalLM",
         "OrionForCausalLM", "GraniteForCausalLM", "MiniCPMForCausalLM", "IQuestCoderForCausalLM", "MiMoForCausalLM",
         "HyperCLOVAXForCausalLM", "LlamaBidirectionalModel", "CwmForCausalLM",
         "LlamaBidirectionalForSequenceClassification", "LlamaForSequenceClassification", "MiniCPM4ForCausalLM"),
        LLAMA,
    ),
    "MiMoForCausalLM": replace(QWEN2, window="none"),
    "OrionForCausalLM": replace(LLAMA, norm_bias=True),
    "InternLM3ForCausalLM": replace(LLAMA, o_bias=None),
    **dict.fromkeys(("MistralForCausalLM", "MistralModel", "Ministral3ForCausalLM"), replace(LLAMA, window="all")),
    **dict.fromkeys(("MinistralForCausalLM",), replace(LLAMA, window="typed")),
    **dict.fromkeys(
        ("Qwen2ForCausalLM", "Qwen2Model", "Qwen2ForRewardModel", "Qwen2ForProcessRewardModel",
         "Qwen2ForSequenceClassification"), QWEN2,
    ),
    **dict.fromkeys(("Qwen3ForCausalLM", "Qwen3Model", "Qwen3ForSequenceClassification"), QWEN3),
    "QWenLMHeadModel": Traits(qkv_bias=True, o_bias=False),
    "SeedOssForCausalLM": Traits(o_bias=False),
    "GemmaForCausalLM": GEMMA,
    **dict.fromkeys(
        ("Gemma2ForCausalLM", "Gemma2Model"), replace(GEMMA, norms=4, window="typed", full_every=2)
    ),
    **dict.fromkeys(
        ("Gemma3ForCausalLM", "Gemma3TextModel"),
        replace(GEMMA, norms=4, qk_norm="head", window="typed", full_every=6),
    ),
    **dict.fromkeys(("Phi3ForCausalLM", "Phi3SmallForCausalLM"), replace(LLAMA, window="all")),
    "PhiForCausalLM": Traits(qkv_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=1, norm_bias=True,
                             head_bias=True),
    "PhiMoEForCausalLM": Traits(norm_bias=True, head_bias=True, window="all", moe=MoeTraits()),
    "SmolLM3ForCausalLM": replace(LLAMA, tied=True),
    "ArceeForCausalLM": replace(LLAMA, gated=False),
    "ApertusForCausalLM": replace(LLAMA, gated=False, qk_norm="head"),
    "NemotronForCausalLM": replace(LLAMA, gated=False, norm_bias=True),
    "StableLmForCausalLM": Traits(o_bias=False, norm_bias=True),
    "OlmoForCausalLM": Traits(norms=0, final_norm=False),
    "Olmo2ForCausalLM": Traits(qk_norm="full"),
    "Olmo3ForCausalLM": Traits(qk_norm="full", window="typed", full_every=4),
    "OlmoeForCausalLM": Traits(qk_norm="full", moe=MoeTraits()),
    "Exaone4ForCausalLM": Traits(qk_norm="head", window="typed", full_every=4),
    **dict.fromkeys(
        ("ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"),
        Traits(qk_norm="head", window="typed", full_every=4, moe=MoeTraits(correction_bias=True)),
    ),
    "MellumForCausalLM": Traits(qk_norm="head", window="typed", moe=MoeTraits()),
    "VaultGemmaForCausalLM": replace(GEMMA, window="typed", full_every=2),
    "Rnj1ForCausalLM": replace(GEMMA, norms=4, qk_norm="head", window="typed", full_every=6),
    "CohereForCausalLM": Traits(norms=1, qk_norm="heads", tied=True),
    "Cohere2ForCausalLM": Traits(norms=1, tied=True, window="typed", full_every=4),
    **dict.fromkeys(("GlmForCausalLM",), Traits(o_bias=False)),
    "Glm4ForCausalLM": Traits(o_bias=False, norms=4),
    **dict.fromkeys(
        ("ChatGLMModel", "ChatGLMForConditionalGeneration", "ChatGLMForCausalLM"), Traits(o_bias=False, mlp_bias=False)
    ),
    "HunYuanDenseV1ForCausalLM": Traits(qk_norm="flagged", tied=True),
    "HunYuanMoEV1ForCausalLM": Traits(qk_norm="flagged", moe=MoeTraits()),
    "Ernie4_5ForCausalLM": Traits(tied=True),
    "Ernie4_5_MoeForCausalLM": Traits(tied=True, moe=MoeTraits(correction_bias=True)),
    "GPT2LMHeadModel": replace(GPT, learned_positions=0, intermediate_factor=4),
    "GPTBigCodeForCausalLM": replace(GPT, learned_positions=0, intermediate_factor=4),
    "OPTForCausalLM": replace(GPT, learned_positions=2),
    "BloomForCausalLM": replace(GPT, embedding_norm=True, intermediate_factor=4),
    "GPTNeoXForCausalLM": replace(GPT, tied=False, rotary=True),
    "GPTJForCausalLM": replace(GPT, qkv_bias=False, o_bias=False, norms=1, tied=False, rotary=True, head_bias=True,
                               intermediate_factor=4),
    "Starcoder2ForCausalLM": Traits(mlp_bias=None, gated=False, norm_bias=True, tied=True, window="all"),
    "FalconForCausalLM": Traits(gated=False, norms=1, norm_bias=True, tied=True, intermediate_factor=4),
    "MPTForCausalLM": Traits(gated=False, tied=True, rotary=False, intermediate_factor=4),
    "MixtralForCausalLM": MIXTRAL,
    "Qwen2MoeForCausalLM": replace(QWEN2, moe=MoeTraits(shared_gate=True)),
    **dict.fromkeys(("Qwen3MoeForCausalLM",), replace(QWEN3, moe=MoeTraits())),
    "GraniteMoeForCausalLM": Traits(moe=MoeTraits()),
    "GraniteMoeSharedForCausalLM": Traits(moe=MoeTraits()),
    "DbrxForCausalLM": Traits(intermediate_factor=0, moe=MoeTraits()),
    "DeepseekForCausalLM": Traits(moe=MoeTraits()),
    "DeepseekV2ForCausalLM": Traits(mla=True, moe=MoeTraits()),
    **dict.fromkeys(
        ("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeLiteForCausalLM",
         "MistralLarge3ForCausalLM", "AXK1ForCausalLM", "KimiK2ForCausalLM"), DEEPSEEK,
    ),
    "Mistral4ForCausalLM": Traits(mla=True, moe=MoeTraits()),
    "MiniCPM3ForCausalLM": Traits(mla=True, latent_cache=False, tied=True),
    "Glm4MoeForCausalLM": GLM4_MOE,
    "Dots1ForCausalLM": Traits(qk_norm="head", moe=MoeTraits(correction_bias=True)),
    "SolarOpenForCausalLM": GLM4_MOE,
    "BailingMoeForCausalLM": Traits(moe=MoeTraits()),
    "BailingMoeV2ForCausalLM": Traits(qk_norm="flagged", moe=MoeTraits(correction_bias=True)),
    "MiniMaxM2ForCausalLM": Traits(qk_norm="full", moe=MoeTraits(correction_bias=True)),
    "HYV3ForCausalLM": Traits(qk_norm="head", moe=MoeTraits(correction_bias=True)),
    "GptOssForCausalLM": Traits(
        qkv_bias=True, o_bias=True, window="typed", full_every=2, sinks=True,
        moe=MoeTraits(bias=True, router_bias=True),
    ),
}  # fmt: skip
