"""Nemotron NAS (nemotron_nas.py): a Llama from whose layers a search has taken attention or narrowed the MLP."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.shape import LARGEST_WIDTH, Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts
from trimtab.facts.weights import Weight

MULTIPLE = 256
"""To what vLLM rounds a width up that is given as a factor (nemotron_nas.py _find_multiple)."""


def deci_lm(keys: Keys, traits: Traits) -> Outline:
    """`block_configs` has an entry per layer: its KV group and its MLP's width, or that it has none."""
    plain = Keys({**keys.config, "intermediate_size": 1}, keys.missing, keys.assumed)
    shape = read_shape(plain)
    blocks = keys.config.get("block_configs")
    if not isinstance(blocks, list) or len(blocks) != shape.layers:
        keys.missing.append("block_configs")
        blocks = []
    made: dict[tuple[int, int], LayerFacts] = {}
    layers = []
    for block in blocks:
        one = Keys(block if isinstance(block, Mapping) else {}, keys.missing, keys.assumed)
        kind = (_kv_heads(one, shape), _width(one, shape))
        if kind not in made:
            made[kind] = _layer(keys, shape, *kind)
        layers.append(made[kind])
    shape = replace(shape, intermediate=max((width for _, width in made), default=0))
    return outline(keys, shape, traits, tuple(layers))


def _kv_heads(block: Keys, shape: Shape) -> int:
    """KV heads of a block, 0 where it has no attention."""
    own = block.sub("attention") or Keys({}, block.missing)
    if own.flag("no_op"):
        return 0
    return shape.heads // (own.required("n_heads_in_group") or 1)


def _width(block: Keys, shape: Shape) -> int:
    own = block.sub("ffn") or Keys({}, block.missing)
    if own.flag("no_op"):
        return 0
    factor = own.number("ffn_mult", high=1024)
    if factor is None:
        return own.required("intermediate_size", high=LARGEST_WIDTH)
    return -(-int(2 * factor * shape.hidden / 3) // MULTIPLE) * MULTIPLE


def _layer(keys: Keys, shape: Shape, kv_heads: int, width: int) -> LayerFacts:
    weights: list[Weight] = []
    attention = None
    if kv_heads:
        attention = Attention(kind_of(shape.heads, kv_heads), shape.heads, kv_heads, shape.head_dim, shape.head_dim)
        bias = keys.flag("attention_bias", "bias")
        own = keys.flag("qkv_bias", default=bias)
        weights += [norm("input_layernorm", shape.hidden)]
        weights += attention_weights(shape, attention, qkv_bias=own, o_bias=bias)
    if width:
        weights += [norm("post_attention_layernorm", shape.hidden)]
        weights += mlp_weights(shape.hidden, width, bias=keys.flag("mlp_bias"))
    return LayerFacts(attention, tuple(weights), intermediate=width)
