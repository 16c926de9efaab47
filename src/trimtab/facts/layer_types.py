"""A config's list of what each layer is: kinds that nobody knows, and lists that do not reach the last layer."""

from __future__ import annotations

from trimtab.errors import ModelError
from trimtab.facts.keys import Keys
from trimtab.messages import msg

KINDS = frozenset({
    "full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention",
    "compressed_sparse_attention", "heavily_compressed_attention", "minimax_m3_sparse", "linear_attention", "conv",
    "moe", "hybrid", "hybrid_sliding", "sparse", "dense",
    "attention", "mamba", "mamba2", "recurrent", "local_attention", "deepseek_sparse_attention",
    "qwen_sparse_attention", "kda", "mla",
})  # fmt: skip
"""transformers 5 configuration_utils.py `ALLOWED_LAYER_TYPES`, and what models' own config classes call them."""


def check_layer_types(keys: Keys, layers: int) -> None:
    """Name a kind that is not known as missing; ModelError for a list of fewer kinds than layers, which transformers
    refuses too."""
    kinds = keys.texts("layer_types")
    if 0 < len(kinds) < layers:
        raise ModelError(
            msg("the model's config names {n} layer_types for {layers} layers", n=len(kinds), layers=layers),
            hint=msg("Compare config.json with the one on the model's page; a damaged download looks like this."),
        )
    keys.missing += [f"layer_types {kind[:40]!r}" for kind in dict.fromkeys(kinds) if kind not in KINDS]
