"""Which dtype a model is served in on cards without bfloat16."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts

FLOAT32_INSTEAD = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
"""Model types that vLLM does not run in float16 (config/model.py `_FLOAT16_NOT_SUPPORTED_MODELS`, 0.26 and 0.33)."""
BFLOAT16_CAPABILITY = 8.0


def dtype_needed(model: ModelFacts, capability: float) -> str | None:
    """--dtype for a bfloat16 model on a card below 8.0; None where the model's own dtype does."""
    if capability >= BFLOAT16_CAPABILITY or model.dtype != "bfloat16":
        return None
    return "float32" if model.model_type in FLOAT32_INSTEAD else "half"
