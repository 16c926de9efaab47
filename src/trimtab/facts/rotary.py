"""The rotary tables that vLLM builds once per rank: how long and how wide each is (rotary_embedding/__init__.py)."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts

MROPE_FACTOR = 4
"""Multimodal rotary tables are made this much longer than the context (mrope.py)."""


def rotary_tables(
    keys: Keys, rope: Mapping[str, object], layers: tuple[LayerFacts, ...]
) -> tuple[tuple[int, int], ...]:
    """(positions, width) of each table, in the model's dtype; layers with equal arguments share one."""
    longest = keys.integer("max_position_embeddings", "max_seq_len", "seq_length", "n_positions") or 0
    found: dict[tuple[str, int, int], None] = {}
    for attention in dict.fromkeys(layer.attention for layer in layers):
        if attention is None or attention.cross:
            continue
        local = attention.window is not None and _has_local_rope(keys)
        scaling = _for_layer(rope, attention, local=local)
        width = _width(keys, scaling, attention)
        if width:
            found["local" if local else "", _positions(keys, scaling, longest), width] = None
    return tuple((n, width) for _, n, width in found if n)


def _has_local_rope(keys: Keys) -> bool:
    """Gemma 3 and 4 rotate their sliding layers by another, unscaled table."""
    return keys.has("rope_local_base_freq") or keys.text("model_type").startswith(("gemma3", "gemma4"))


def _for_layer(rope: Mapping[str, object], attention: Attention, *, local: bool) -> Mapping[str, object]:
    nested = rope.get("sliding_attention" if attention.window is not None else "full_attention")
    if isinstance(nested, Mapping):
        return nested
    return {} if local else rope


def _width(keys: Keys, scaling: Mapping[str, object], attention: Attention) -> int:
    if attention.qk_rope_head_dim is not None:
        return attention.qk_rope_head_dim
    if keys.has("rotary_dim"):
        return keys.integer("rotary_dim") or 0
    part = scaling.get("partial_rotary_factor")
    if scaling.get("rope_type") == "proportional" or not isinstance(part, int | float):
        part = None if scaling.get("rope_type") == "proportional" else keys.number(
            "partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"
        )  # fmt: skip
    width = int(attention.head_dim * part) if part else attention.head_dim
    return width // 2 if keys.text("model_type") == "chatglm" else width


def _positions(keys: Keys, scaling: Mapping[str, object], longest: int) -> int:
    kind, factor = scaling.get("rope_type"), scaling.get("factor")
    if "mrope_section" in scaling:
        return longest * MROPE_FACTOR
    name = "original_max_position_embeddings"
    original = scaling.get(name, keys.integer(name))
    if kind in ("longrope", "su") and isinstance(original, int):
        return longest + original
    if not isinstance(factor, int | float) or factor <= 0 or kind not in ("linear", "dynamic", "yarn", "deepseek_yarn"):
        return longest
    start = original if kind in ("yarn", "deepseek_yarn") and isinstance(original, int) else longest
    return int(start * factor)
