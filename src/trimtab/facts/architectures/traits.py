"""What sets one decoder architecture apart from a plain Llama, as data: biases, norms, windows, ties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Traits:
    """Differences from Llama. A bias of None is read from the config (`attention_bias`, `mlp_bias`)."""

    qkv_bias: bool | None = None
    o_bias: bool | None = None
    mlp_bias: bool | None = None
    gated: bool = True
    qk_norm: Literal["", "head", "full"] = ""
    norms: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    learned_positions: int | None = None
    """Rows added to max_positions in a learned position table; None: rotary or none."""
    rotary: bool = True
    tied: bool = False
    """The config class's default of tie_word_embeddings."""
    window: Literal["none", "all", "flagged", "typed"] = "none"
    """Which layers slide: none, all when `sliding_window` is set, all when `use_sliding_window`, or by layer."""
    full_every: int = 0
    """With "typed" and no `layer_types`: every n-th layer sees all."""
    chunked: bool = False
    default_window: int | None = None
    intermediate_factor: int | None = None
    kv_heads_default: int | None = None
    head_bias: bool = False
    max_positions_default: int = 0


LLAMA = Traits()
QWEN2 = Traits(qkv_bias=True, o_bias=False, window="flagged")
QWEN3 = Traits(qk_norm="head", window="flagged")
GEMMA = Traits(tied=True)
GPT = Traits(qkv_bias=True, o_bias=True, mlp_bias=True, gated=False, norm_bias=True, tied=True, rotary=False)

DECODERS: dict[str, Traits] = {
    **dict.fromkeys(
        ("LlamaForCausalLM", "LLaMAForCausalLM", "YiForCausalLM", "InternLMForCausalLM", "AquilaForCausalLM",
         "AquilaModel", "XverseForCausalLM", "InternLM2ForCausalLM", "InternLM3ForCausalLM", "SolarForCausalLM",
         "ExaoneForCausalLM", "TeleChat3ForCausalLM", "LlamaModel", "DeciLMForCausalLM"),
        LLAMA,
    ),
    **dict.fromkeys(("MistralForCausalLM", "MistralModel", "Ministral3ForCausalLM"), replace(LLAMA, window="all")),
    **dict.fromkeys(("Qwen2ForCausalLM", "Qwen2Model", "Qwen2ForRewardModel"), QWEN2),
    "Qwen3ForCausalLM": QWEN3,
    "GemmaForCausalLM": GEMMA,
    "Gemma2ForCausalLM": replace(GEMMA, norms=4, window="typed", full_every=2, default_window=4096),
    "Gemma3ForCausalLM": replace(GEMMA, norms=4, qk_norm="head", window="typed", full_every=6, default_window=4096),
    "Gemma3TextModel": replace(GEMMA, norms=4, qk_norm="head", window="typed", full_every=6, default_window=4096),
    "Phi3ForCausalLM": replace(LLAMA, window="all"),
    "GraniteForCausalLM": LLAMA,
    "SmolLM3ForCausalLM": replace(LLAMA, tied=True),
}  # fmt: skip
