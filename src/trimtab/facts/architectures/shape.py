"""The sizes that almost every decoder's config has, under all the names that configs give them."""

from __future__ import annotations

import msgspec

from trimtab.errors import ModelError
from trimtab.facts.keys import Keys
from trimtab.messages import msg

MOST_LAYERS = 1024
LARGEST_WIDTH = 1 << 20


class Shape(msgspec.Struct, frozen=True):
    """A decoder's sizes. `intermediate` is the dense feed-forward width."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    element_bytes: int = 2


def read_shape(keys: Keys, *, kv_heads_default: int | None = None, intermediate_factor: int | None = None) -> Shape:
    """Read the common sizes; `kv_heads_default` and `intermediate_factor` (times hidden) are the class's defaults."""
    hidden = keys.required("hidden_size", "n_embd", "d_model", "dim", "model_dim", high=LARGEST_WIDTH)
    layers = keys.required("num_hidden_layers", "n_layer", "n_layers", "num_layers", high=MOST_LAYERS)
    heads = keys.required("num_attention_heads", "n_head", "n_heads", "num_heads", high=LARGEST_WIDTH)
    vocab = keys.required("vocab_size", "padded_vocab_size", "n_vocab", high=1 << 24)
    kv_heads = _kv_heads(keys, heads if kv_heads_default is None else kv_heads_default)
    head_dim = keys.integer("head_dim", "attention_head_dim", "kv_channels", high=LARGEST_WIDTH)
    if not head_dim:
        head_dim = hidden // heads if heads else 0
    if kv_heads and heads > kv_heads and heads % kv_heads:
        raise ModelError(
            msg("the model's config has {heads} attention heads over {kv} of keys and values, which do not divide",
                heads=heads, kv=kv_heads),
            hint=msg("Compare config.json with the one on the model's page; a damaged download looks like this."),
        )  # fmt: skip
    return Shape(hidden, layers, heads, kv_heads, head_dim, _intermediate(keys, hidden, intermediate_factor), vocab)


def _kv_heads(keys: Keys, default: int) -> int:
    names = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "n_kv_heads", "kv_n_heads")
    if keys.flag("multi_query") and not keys.flag("new_decoder_architecture") and not keys.has("num_key_value_heads"):
        return 1
    nested = keys.sub("attn_config")
    found = keys.integer(*names, low=1, high=LARGEST_WIDTH)
    if found is None and nested is not None:
        found = nested.integer("kv_n_heads", low=1, high=LARGEST_WIDTH)
    return default if found is None else found


def _intermediate(keys: Keys, hidden: int, factor: int | None) -> int:
    names = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim")
    found = keys.integer(*names, low=1, high=LARGEST_WIDTH)
    if found is not None and not any(keys.given.get(name) is not None for name in names):
        return keys.required("intermediate_size")
    if found is not None:
        # Qwen 1 counts gate and up together (vLLM: models/qwen.py).
        return found // 2 if keys.text("model_type") == "qwen" else found
    if factor is not None:
        return hidden * factor
    return keys.required("intermediate_size")
