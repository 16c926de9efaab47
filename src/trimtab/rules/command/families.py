"""Which tool-call and reasoning parsers read the output of which model families; no rule itself.

Of architectures those whose models all write one format stand here; of Llama, Mistral, Qwen 2 and 3 the fine-tunes
differ, and their publishers' own models are known by their ids.
From vLLM's docs/features/tool_calling.md and reasoning_outputs.md (0.33) and the recipes of vllm-project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trimtab.rules.command.context import CommandContext

_GLM = ("glm47", "glm45")
_QWEN = ("qwen3_coder", "qwen3_xml")
TOOLS: Mapping[str, tuple[str, ...]] = {
    "DeepseekV3ForCausalLM": ("deepseek_v3", "deepseek_v31", "kimi_k2"),
    "DeepseekV32ForCausalLM": ("deepseek_v32", "deepseek_v31"),
    "DeepseekV4ForCausalLM": ("deepseek_v4", "deepseek_v41"),
    "Gemma4ForConditionalGeneration": ("gemma4",),
    "Glm4MoeForCausalLM": _GLM,
    "Glm4MoeLiteForCausalLM": _GLM,
    "GlmMoeDsaForCausalLM": _GLM,
    "GptOssForCausalLM": ("openai",),
    "HYV3ForCausalLM": ("hy_v3",),
    "Llama4ForConditionalGeneration": ("llama4_pythonic", "llama4_json", "llama3_json", "pythonic"),
    "MiniMaxM2ForCausalLM": ("minimax_m2",),
    "Qwen3NextForCausalLM": ("hermes", *_QWEN, "qwen3_json"),
    "Qwen3_5ForConditionalGeneration": _QWEN,
    "Qwen3_5MoeForConditionalGeneration": _QWEN,
    "SeedOssForCausalLM": ("seed_oss",),
    "Step3p5ForCausalLM": ("step3p5",),
}
"""Architecture -> tool-call parsers that read its models, the usual one first."""

REASONING: Mapping[str, tuple[str, ...]] = {
    "DeepseekV3ForCausalLM": ("deepseek_r1", "deepseek_v3", "kimi_k2"),
    "DeepseekV32ForCausalLM": ("deepseek_v3", "deepseek_r1"),
    "DeepseekV4ForCausalLM": ("deepseek_v4", "deepseek_v41"),
    "Gemma4ForConditionalGeneration": ("gemma4",),
    "Glm4MoeForCausalLM": ("glm45", "glm47"),
    "Glm4MoeLiteForCausalLM": ("glm45", "glm47"),
    "GlmMoeDsaForCausalLM": ("glm45", "glm47"),
    "GptOssForCausalLM": ("openai_gptoss",),
    "HYV3ForCausalLM": ("hy_v3",),
    "MiniMaxM2ForCausalLM": ("minimax_m2_append_think", "minimax_m2"),
    "Qwen3_5ForConditionalGeneration": ("qwen3",),
    "Qwen3_5MoeForConditionalGeneration": ("qwen3",),
    "SeedOssForCausalLM": ("seed_oss",),
    "Step3p5ForCausalLM": ("step3p5",),
}
"""Architecture -> reasoning parsers that read its models, the usual one first."""

Named = Sequence[tuple[re.Pattern[str], tuple[str, ...]]]
_HERMES = ("hermes", "qwen3_json")
TOOLS_NAMED: Named = (
    (re.compile(r"Qwen/Qwen3-Coder-", re.IGNORECASE), (*_QWEN, "qwen3_json")),
    (re.compile(r"Qwen/Qwen(2\.5|3)-\d", re.IGNORECASE), _HERMES),
    (re.compile(r"Qwen/QwQ-", re.IGNORECASE), _HERMES),
    (re.compile(r"meta-llama/(Meta-)?Llama-3\.[123]-.*Instruct", re.IGNORECASE), ("llama3_json", "pythonic")),
    (re.compile(r"mistralai/.*Instruct", re.IGNORECASE), ("mistral",)),
)
"""Ids of publishers -> tool-call parsers that read these models, the usual one first; before architectures."""

REASONING_NAMED: Named = (
    (re.compile(r"Qwen/(Qwen3-(?!Coder)\d|QwQ-)", re.IGNORECASE), ("qwen3", "deepseek_r1", "deepseek_v3")),
    (re.compile(r"deepseek-ai/DeepSeek-R1-", re.IGNORECASE), ("deepseek_r1", "deepseek_v3", "qwen3")),
)
"""Ids of publishers -> reasoning parsers that read these models, the usual one first."""

ANY_MODEL = ("hf", "beam")
"""Parsers that read the format from the checkpoint."""


def mismatch(
    context: CommandContext, flag: str, families: Mapping[str, tuple[str, ...]], named: Named
) -> tuple[str, str] | None:
    """(family, fitting parsers) where the flag names a parser that this vLLM has and the model does not suit."""
    asked = context.command.get(flag)
    known = context.flags.find(f"--{flag}")
    if not asked or asked in ANY_MODEL or known is None or asked not in known.choices:
        return None
    model = context.command.get("model") or (context.command.model.text if context.command.model else "")
    family, suited = model, next((parsers for pattern, parsers in named if pattern.match(model)), ())
    if not suited:
        family = context.require_config().architecture
        suited = families.get(family, ())
    fitting = [p for p in suited if p in known.choices]
    if not fitting or asked in fitting:
        return None
    return family, ", ".join(fitting)
