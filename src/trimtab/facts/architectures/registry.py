"""Which builder reads which architecture, and what is said of one that none reads."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from trimtab.facts.architectures import (
    bailing,
    clips,
    deepseek_v4,
    eagle,
    encoders,
    gated,
    hybrids,
    kimi,
    longcat,
    minimax_m3,
    mixed,
    nas,
    step,
    whisper,
)
from trimtab.facts.architectures.decoder import Outline, build_decoder
from trimtab.facts.architectures.drafts import with_drafts
from trimtab.facts.architectures.multimodal import WRAPPERS, build_towers, decoder_architecture
from trimtab.facts.architectures.traits import DECODERS, GEMMA, LLAMA, Traits
from trimtab.facts.keys import Keys

TIED = GEMMA
NOPE = replace(LLAMA, rotary=False)
BUILDERS: dict[str, tuple[Callable[[Keys, Traits], Outline], Traits]] = {
    **{name: (build_decoder, traits) for name, traits in DECODERS.items()},
    "Qwen3NextForCausalLM": (hybrids.qwen_next, LLAMA),
    "Qwen3_5ForCausalLM": (hybrids.qwen_next, LLAMA),
    "Qwen3_5MoeForCausalLM": (hybrids.qwen_next, LLAMA),
    "Qwen4ExpForCausalLM": (hybrids.qwen4_exp, LLAMA),
    "KimiLinearForCausalLM": (kimi.kimi_linear, LLAMA),
    "Glm5NextForCausalLM": (kimi.kimi_linear, NOPE),
    "JambaForCausalLM": (hybrids.jamba, NOPE),
    "MambaForCausalLM": (hybrids.pure_mamba, TIED),
    "FalconMambaForCausalLM": (hybrids.pure_mamba, TIED),
    "Mamba2ForCausalLM": (hybrids.pure_mamba, LLAMA),
    "BambaForCausalLM": (hybrids.mamba2_hybrid, LLAMA),
    "GraniteMoeHybridForCausalLM": (hybrids.mamba2_hybrid, LLAMA),
    "FalconH1ForCausalLM": (hybrids.falcon_h1, LLAMA),
    "NemotronHForCausalLM": (hybrids.nemotron_h, NOPE),
    "NemotronHPuzzleForCausalLM": (hybrids.nemotron_h, NOPE),
    "Lfm2ForCausalLM": (hybrids.lfm2, TIED),
    "Lfm2MoeForCausalLM": (hybrids.lfm2, TIED),
    "EagleLlamaForCausalLM": (eagle.eagle, LLAMA),
    "EagleMistralForCausalLM": (eagle.eagle, LLAMA),
    **dict.fromkeys(
        (
            "Eagle3LlamaForCausalLM",
            "LlamaForCausalLMEagle3",
            "Eagle3Qwen3ForCausalLM",
            "Eagle3Qwen2_5vlForCausalLM",
            "Eagle3Qwen3vlForCausalLM",
            "Eagle3MiniMaxM2ForCausalLM",
            "PeagleLlamaForCausalLM",
            "PEagleDraftModel",
        ),
        (eagle.eagle3, LLAMA),
    ),
    "LagunaForCausalLM": (gated.laguna, LLAMA),
    "AfmoeForCausalLM": (gated.afmoe, LLAMA),
    "LongcatFlashForCausalLM": (longcat.longcat_flash, LLAMA),
    "BailingMoeV2_5ForCausalLM": (bailing.bailing_linear, LLAMA),
    "BailingMoeV3ForCausalLM": (bailing.bailing_v3, LLAMA),
    **dict.fromkeys(
        ("NomicBertModel", "GteModel", "GteNewModel", "GteNewForSequenceClassification"), (encoders.rotary_bert, LLAMA)
    ),
    "WhisperForConditionalGeneration": (whisper.whisper, LLAMA),
    "DeciLMForCausalLM": (nas.deci_lm, LLAMA),
    "MiniMaxM3SparseForCausalLM": (minimax_m3.minimax_m3, LLAMA),
    "DeepseekV4ForCausalLM": (deepseek_v4.deepseek_v4, LLAMA),
    "Step3TextForCausalLM": (step.step3, LLAMA),
    "Step3p5ForCausalLM": (step.step3p5, LLAMA),
    "Llama4ForCausalLM": (mixed.llama4, LLAMA),
    "Gemma4ForCausalLM": (mixed.gemma4, TIED),
    "Gemma3nForCausalLM": (mixed.gemma3n, TIED),
    "MiMoV2FlashForCausalLM": (mixed.mimo_v2, LLAMA),
    "MiMoV2ForCausalLM": (mixed.mimo_v2, LLAMA),
    "MolmoForCausalLM": (clips.molmo, Traits(o_bias=False)),
    "MllamaForCausalLM": (mixed.mllama, LLAMA),
    **dict.fromkeys(
        (
            "BertModel",
            "BertForMaskedLM",
            "BertForSequenceClassification",
            "BertForTokenClassification",
            "RobertaModel",
            "RobertaForMaskedLM",
            "RobertaForSequenceClassification",
            "RobertaForTokenClassification",
            "XLMRobertaForTokenClassification",
            "XLMRobertaModel",
            "BgeM3EmbeddingModel",
            "XLMRobertaForSequenceClassification",
        ),
        (encoders.bert, LLAMA),
    ),
    **dict.fromkeys(
        ("ModernBertModel", "ModernBertForSequenceClassification", "ModernBertForTokenClassification"),
        (encoders.modernbert, LLAMA),
    ),
    **dict.fromkeys(
        ("MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM", "MiniMaxForCausalLM"), (hybrids.minimax01, LLAMA)
    ),
}


RENAMED = {
    "MptForCausalLM": "MPTForCausalLM", "RWForCausalLM": "FalconForCausalLM",
    "StableLMEpochForCausalLM": "StableLmForCausalLM", "Phi4MultimodalForCausalLM": "Phi4MMForCausalLM",
}  # fmt: skip
"""Old names in checkpoints of architectures that vLLM serves under a new one."""


def known_architectures() -> tuple[str, ...]:
    """Every architecture that is read as what it is, plain or multimodal."""
    return (*BUILDERS, *WRAPPERS)


def architecture_of(top: Keys) -> str:
    names = top.texts("architectures")
    if names:
        return names[0]
    top.missing.append("architectures")
    return ""


def _generating(architecture: str) -> str:
    """The generating twin of a classifier or an old name: vLLM serves both with one body."""
    if architecture in RENAMED:
        return RENAMED[architecture]
    body = architecture
    for ending in ("ForSequenceClassification", "ForTokenClassification", "ForRewardModel"):
        body = body.removesuffix(ending)
    return body if body == architecture else f"{body}ForCausalLM"


def build(top: Keys, text: Keys, architecture: str) -> Outline:
    """The model's body; an unknown architecture is read as a plain decoder and named in `missing`."""
    inner = decoder_architecture(architecture, text)
    known = BUILDERS.get(inner) or BUILDERS.get(_generating(inner))
    if known is None:
        top.missing.append(f"architecture {architecture}")
        return build_decoder(text, LLAMA)
    builder, traits = known
    found = builder(text, traits)
    found = replace(found, towers=found.towers + build_towers(top, architecture, found.shape.hidden))
    return with_drafts(found, text, inner)
