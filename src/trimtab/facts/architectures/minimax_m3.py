"""MiniMax M3 (models/minimax_m3): grouped-query attention, in most layers over blocks that a small indexer picks."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.shape import LARGEST_WIDTH, Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, Indexer, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight


def minimax_m3(keys: Keys, traits: Traits) -> Outline:
    """Dense layers first, then experts; `sparse_attention_freq` says which layers have an indexer."""
    shape = read_shape(keys)
    dense = keys.integer("dense_intermediate_size", low=1, high=LARGEST_WIDTH) or shape.intermediate
    moe = read_moe(keys, shape.intermediate)
    experts = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    own = keys.sub("sparse_attention_config")
    picks = [bool(n) for n in own.integers("sparse_attention_freq")] if own is not None else []
    picks += [False] * (shape.layers - len(picks))
    indexer = _indexer(own) if own is not None and any(picks) else None
    kinds = list(zip(picks, experts, strict=False))
    made = {kind: _layer(shape, indexer if kind[0] else None, moe if kind[1] else None, dense)
            for kind in dict.fromkeys(kinds)}  # fmt: skip
    return outline(keys, shape, traits, tuple(made[kind] for kind in kinds))


def _indexer(own: Keys) -> Indexer:
    heads, dim = own.required("sparse_num_index_heads"), own.required("sparse_index_dim")
    blocks, size = own.integer("sparse_topk_blocks") or 0, own.integer("sparse_block_size") or 0
    return Indexer(heads, dim, blocks * size, element="kv")


def _layer(shape: Shape, indexer: Indexer | None, moe: Moe | None, dense: int) -> LayerFacts:
    dim = shape.head_dim
    a = Attention(
        kind_of(shape.heads, shape.kv_heads), shape.heads, shape.kv_heads, dim, dim, indexer=indexer
    )  # fmt: skip
    weights = [norm(f"norm{i}", shape.hidden) for i in range(2)]
    projections = attention_weights(shape, a)
    if indexer is not None:
        width = indexer.heads * indexer.head_dim
        extra = (Span(width, shape.kv_heads), Span(indexer.head_dim, 1))
        projections = (replace(projections[0], spans=projections[0].spans + extra), *projections[1:])
        weights += [norm(f"self_attn.index_{n}_norm", indexer.head_dim, part="attention") for n in ("q", "k")]
    weights += projections
    weights += [norm(f"self_attn.{n}_norm", dim, part="attention") for n in ("q", "k")]
    if moe is None:
        return LayerFacts(a, (*weights, *mlp_weights(shape.hidden, dense)), intermediate=dense)
    fed = moe_weights(shape.hidden, moe, correction_bias=True)
    return LayerFacts(a, (*weights, *(_wide_router(w) for w in fed)), moe, moe.intermediate)


def _wide_router(w: Weight) -> Weight:
    """The router is stored and held in float32."""
    return replace(w, element_bytes=4) if w.part == "router" else w
