"""DeepSeek V4 (vllm/models/deepseek_v4): a windowed latent in every layer, compressed ones beside it."""

from __future__ import annotations

from trimtab.facts.architectures.blocks import hyper_connections, matrix, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, outline
from trimtab.facts.architectures.experts import read_moe
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, Indexer, LayerFacts, Moe, SideCache
from trimtab.facts.weights import Span, Weight

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
RATIOS = {SPARSE: 4, HEAVY: 128}
OVERLAPPED = 4
"""The ratio whose windows overlap, which doubles the compressor's widths (compressor.py)."""


def deepseek_v4(keys: Keys, traits: Traits) -> Outline:
    """Layers by compression ratio (1, 4 or 128) and by whether their router is a hash table."""
    shape = read_shape(keys, intermediate_factor=0)
    moe = read_moe(keys, shape.intermediate)
    ratios = _ratios(keys, shape.layers)
    hashed = keys.integer("num_hash_layers")
    hashed = 3 if hashed is None else hashed
    kinds = [(ratio, i < hashed) for i, ratio in enumerate(ratios)]
    made = {kind: _layer(keys, shape, moe, *kind) for kind in dict.fromkeys(kinds)}
    return outline(keys, shape, traits, tuple(made[k] for k in kinds))


def _ratios(keys: Keys, layers: int) -> list[int]:
    """Tokens per compressed entry of each layer; 1: the layer has its window alone."""
    listed = keys.integers("compress_ratios")
    if listed:
        return [max(1, n) for n in listed[:layers]]
    types = keys.texts("layer_types")
    if not types:
        types = (HEAVY, HEAVY, *(SPARSE if i % 2 else HEAVY for i in range(max(0, layers - 2))))
        keys.assumed.append("layer_types by the config class's rule")
    return [RATIOS.get(t, 1) for t in types[:layers]]


def _layer(keys: Keys, shape: Shape, moe: Moe | None, ratio: int, hashed: bool) -> LayerFacts:
    h = shape.hidden
    weights = [norm("attn_norm", h), norm("ffn_norm", h)]
    weights += hyper_connections(h, keys.integer("hc_mult", low=1) or 4)
    weights += _attention_weights(keys, shape, ratio)
    if moe is not None:
        weights += moe_weights(h, moe, correction_bias=not hashed)
        if hashed:
            weights.append(Weight("mlp.gate.tid2eid", "router", (Span(shape.vocab),), moe.per_token, element_bytes=4))
    return LayerFacts(_attention(keys, shape, ratio), tuple(weights), moe, moe.intermediate if moe else 0)


def _attention(keys: Keys, shape: Shape, ratio: int) -> Attention:
    rope = keys.integer("qk_rope_head_dim", low=1) or 64
    side: list[SideCache] = []
    if ratio > 1:
        wide = 2 if ratio == OVERLAPPED else 1
        side.append(SideCache("compressed", shape.head_dim, "kv", ratio))
        side.append(SideCache("compressor state", 2 * wide * shape.head_dim, "float32", window=wide * ratio))
    indexer = None
    if ratio == OVERLAPPED:
        indexer = Indexer(keys.required("index_n_heads"), keys.required("index_head_dim"), keys.required("index_topk"))
        side.append(SideCache("indexer", indexer.head_dim, "fp8", ratio))
        side.append(SideCache("indexer compressor state", 4 * indexer.head_dim, "float32", window=2 * ratio))
    return Attention(
        "mla", shape.heads, 1, shape.head_dim, shape.head_dim, keys.integer("sliding_window", low=1), None,
        shape.head_dim - rope, rope, keys.integer("q_lora_rank"), indexer, side=tuple(side),
    )  # fmt: skip


def _attention_weights(keys: Keys, shape: Shape, ratio: int) -> list[Weight]:
    h, dim, rank = shape.hidden, shape.head_dim, keys.required("q_lora_rank")
    groups, out_rank = keys.required("o_groups"), keys.required("o_lora_rank")
    inner = shape.heads * dim
    found = [
        Weight("self_attn.fused_wqa_wkv", "attention", (Span(rank), Span(dim)), h),
        norm("self_attn.q_norm", rank),
        norm("self_attn.kv_norm", dim),
        Weight("self_attn.wq_b", "attention", (Span(inner, shape.heads),), rank, "rows"),
        Weight("self_attn.wo_a", "attention", (Span(groups * out_rank, groups),), inner // max(1, groups), "rows"),
        matrix("self_attn.wo_b", "attention", h, groups * out_rank, split="columns"),
        Weight("self_attn.attn_sink", "attention", (Span(shape.heads, shape.heads),), split="rows", element_bytes=4),
    ]
    if ratio > 1:
        found += _compressor(h, dim, ratio, "self_attn.compressor")
    if ratio == OVERLAPPED:
        heads, index_dim = keys.required("index_n_heads"), keys.required("index_head_dim")
        found += [
            matrix("self_attn.indexer.wq_b", "attention", heads * index_dim, rank),
            Weight("self_attn.indexer.weights_proj", "attention", (Span(heads),), h, packable=False),
            *_compressor(h, index_dim, ratio, "self_attn.indexer.compressor"),
        ]
    return found


def _compressor(hidden: int, dim: int, ratio: int, name: str) -> list[Weight]:
    wide = (2 if ratio == OVERLAPPED else 1) * dim
    return [
        Weight(f"{name}.ape", "attention", (Span(ratio),), wide, element_bytes=4, packable=False),
        Weight(f"{name}.fused_wkv_wgate", "attention", (Span(wide), Span(wide)), hidden, packable=False),
        norm(f"{name}.norm", dim),
    ]
