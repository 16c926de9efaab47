"""Attention whose output passes a gate of its own matrix, per head or per channel: Laguna and Trinity (AFMoE)."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight


def laguna(keys: Keys, traits: Traits) -> Outline:
    """Poolside's Laguna (laguna.py): each layer may have its own number of heads; a gate per head or channel."""
    heads, gate = keys.integers("num_attention_heads_per_layer"), keys.config.get("gating", True)
    return _gated(keys, traits, heads, per_head=gate in (True, "per-head"), gated=bool(gate), norms=2)


def afmoe(keys: Keys, traits: Traits) -> Outline:
    """Arcee's Trinity (afmoe.py): four norms, a gate per channel, every fourth layer sees all."""
    return _gated(keys, traits, (), per_head=False, gated=True, norms=4)


def _gated(
    keys: Keys, traits: Traits, heads: tuple[int, ...], *, per_head: bool, gated: bool, norms: int
) -> Outline:  # fmt: skip
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    types, window = keys.texts("layer_types"), keys.integer("sliding_window", low=1)
    every = keys.integer("global_attn_every_n_layers", low=1) or 0
    slides = [types[i] == "sliding_attention" if i < len(types) else bool(every and (i + 1) % every)
              for i in range(shape.layers)]  # fmt: skip
    counts = [heads[i] if i < len(heads) else shape.heads for i in range(shape.layers)]
    made: dict[tuple[int, bool, bool], LayerFacts] = {}
    for kind in dict.fromkeys(zip(counts, slides, sparse, strict=False)):
        own = replace(shape, heads=kind[0])
        dim = shape.head_dim
        a = Attention(kind_of(own.heads, own.kv_heads), own.heads, own.kv_heads, dim, dim, window if kind[1] else None)
        mixer = [norm(f"norm{i}", shape.hidden) for i in range(norms)]
        mixer += attention_weights(own, a, qkv_bias=keys.flag("attention_bias"), o_bias=keys.flag("attention_bias"))
        mixer += [norm(f"self_attn.{n}_norm", dim, part="attention") for n in ("q", "k")]
        if gated:
            mixer.append(_gate(own, a, per_head))
        made[kind] = _layer(shape, a, tuple(mixer), moe if kind[2] else None)
    return outline(keys, shape, traits, tuple(made[k] for k in zip(counts, slides, sparse, strict=False)))


def _gate(shape: Shape, a: Attention, per_head: bool) -> Weight:
    rows = a.heads if per_head else a.heads * a.head_dim
    return Weight("self_attn.g_proj", "attention", (Span(rows, a.heads),), shape.hidden, "rows")


def _layer(shape: Shape, a: Attention, mixer: tuple[Weight, ...], moe: Moe | None) -> LayerFacts:
    if moe is None:
        return LayerFacts(a, mixer + mlp_weights(shape.hidden, shape.intermediate), None, shape.intermediate)
    return LayerFacts(a, mixer + moe_weights(shape.hidden, moe, correction_bias=True), moe, moe.intermediate)
