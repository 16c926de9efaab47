"""Decoders made of attention and a feed-forward block: one builder, steered by Traits."""

from __future__ import annotations

import msgspec

from trimtab.facts.architectures.blocks import attention_weights, mla_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, AttentionKind, Draft, Indexer, LayerFacts, Moe, Tower
from trimtab.facts.weights import Span, Weight


class Outline(msgspec.Struct, frozen=True):
    """A model's body before quantisation is laid over it."""

    shape: Shape
    embedding: tuple[Weight, ...]
    layers: tuple[LayerFacts, ...]
    head: tuple[Weight, ...]
    tied: bool
    rotary: bool = True
    task: str = "generate"
    towers: tuple[Tower, ...] = ()
    drafts: tuple[Draft, ...] = ()
    notes: tuple[str, ...] = ()


def kind_of(heads: int, kv_heads: int) -> AttentionKind:
    if kv_heads == heads:
        return "mha"
    return "mqa" if kv_heads == 1 else "gqa"


def build_decoder(keys: Keys, traits: Traits) -> Outline:
    """Embedding, layers and head of a decoder whose layers differ at most in window and experts."""
    shape = read_shape(keys, intermediate_factor=traits.intermediate_factor)
    return outline(keys, shape, traits, decoder_layers(keys, shape, traits))


def decoder_layers(keys: Keys, shape: Shape, traits: Traits) -> tuple[LayerFacts, ...]:
    moe = read_moe(keys, shape.intermediate) if traits.moe else None
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    attentions = attention_of_layers(keys, shape, traits)
    made: dict[tuple[Attention, bool], LayerFacts] = {}
    for pair in zip(attentions, sparse, strict=False):
        if pair not in made:
            made[pair] = one_layer(keys, shape, traits, pair[0], moe if pair[1] else None)
    return tuple(made[pair] for pair in zip(attentions, sparse, strict=False))


def attention_of_layers(keys: Keys, shape: Shape, traits: Traits) -> list[Attention]:
    if traits.mla:
        return latent_attentions(keys, shape, cached=traits.latent_cache)
    kind = kind_of(shape.heads, shape.kv_heads)
    return [
        Attention(kind, shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim, window, chunk)
        for window, chunk in windows(keys, traits, shape.layers)
    ]


def latent_attentions(keys: Keys, shape: Shape, *, cached: bool = True) -> list[Attention]:
    """MLA per layer; where `indexer_types` says "shared", the layer reads another's indexer.

    Not `cached`: the latent is expanded before it is cached, as in a plain layer (MiniCPM3).
    """
    latent, rope = keys.required("kv_lora_rank"), keys.required("qk_rope_head_dim", low=0)
    head = keys.required("qk_nope_head_dim") + rope
    value = keys.integer("v_head_dim", low=1) or shape.hidden // max(1, shape.heads)
    rank = keys.integer("q_lora_rank") or None
    if not cached:
        return [Attention("mha", shape.heads, shape.heads, head, head, q_lora_rank=rank)] * shape.layers
    top_k, indexer = keys.integer("index_topk"), None
    if top_k:
        indexer = Indexer(keys.required("index_n_heads"), keys.required("index_head_dim"), top_k)
    types = _indexer_types(keys, shape.layers)
    return [
        Attention("mla", shape.heads, 1, head, value, None, None, latent, rope, rank,
                  None if i < len(types) and types[i] == "shared" else indexer)
        for i in range(shape.layers)
    ]  # fmt: skip


def _indexer_types(keys: Keys, layers: int) -> tuple[str, ...]:
    """Per layer "full" or "shared", by list, by pattern ("FSSF") or by frequency (GlmMoeDsaConfig's rule)."""
    listed, pattern = keys.texts("indexer_types"), keys.text("index_topk_pattern")
    if listed or pattern:
        return listed or tuple("full" if c == "F" else "shared" for c in pattern)
    every = keys.integer("index_topk_freq", low=1) or 1
    offset = keys.integer("index_skip_topk_offset")
    offset = 2 if offset is None else offset
    return tuple("shared" if max(i - offset + 1, 0) % every else "full" for i in range(layers))


def one_layer(keys: Keys, shape: Shape, traits: Traits, attention: Attention, moe: Moe | None) -> LayerFacts:
    weights = mixer_weights(keys, shape, traits, attention) + ffn_weights(keys, shape, traits, moe)
    return LayerFacts(attention, weights, moe, moe.intermediate if moe else shape.intermediate)


def ffn_weights(keys: Keys, shape: Shape, traits: Traits, moe: Moe | None) -> tuple[Weight, ...]:
    if moe is not None and traits.moe is not None:
        t = traits.moe
        return moe_weights(
            shape.hidden, moe, bias=t.bias, router_bias=t.router_bias, correction_bias=t.correction_bias,
            shared_gate=t.shared_gate, gated=traits.gated,
        )  # fmt: skip
    bias = keys.flag("mlp_bias", "use_bias", "bias") if traits.mlp_bias is None else traits.mlp_bias
    return mlp_weights(shape.hidden, shape.intermediate, gated=traits.gated, bias=bias)


def mixer_weights(keys: Keys, shape: Shape, traits: Traits, a: Attention) -> tuple[Weight, ...]:
    """Norms, qkv_proj, o_proj and the norms of queries and keys."""
    norms = 2 if keys.flag("new_decoder_architecture") else traits.norms
    found = [norm(f"norm{i}", shape.hidden, bias=traits.norm_bias) for i in range(norms)]
    declared = keys.flag("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias", "bias")
    if traits.mla:
        nope = keys.integer("qk_nope_head_dim") or 0
        found += mla_weights(shape, a, nope=nope, bias=keys.flag("attention_bias"))
        return tuple(found)
    out_bias = keys.flag("attention_out_bias", default=declared)
    found += attention_weights(
        shape, a, qkv_bias=declared if traits.qkv_bias is None else traits.qkv_bias,
        o_bias=out_bias if traits.o_bias is None else traits.o_bias,
    )  # fmt: skip
    if traits.sinks:
        found.append(Weight("self_attn.sinks", "attention", (Span(a.heads, a.heads),), split="rows"))
    return (*found, *qk_norms(keys, traits, a))


def qk_norms(keys: Keys, traits: Traits, a: Attention) -> tuple[Weight, ...]:
    kind = traits.qk_norm
    if kind == "heads" or (kind == "full" and keys.has("use_qk_norm")):
        kind = kind if keys.flag("use_qk_norm") else ""
    if kind == "flagged":
        kind = "head" if keys.flag("use_qk_norm", "qk_layernorm", "use_qk_norm") else ""
    if not kind:
        return ()
    q, k = (a.head_dim, a.head_dim) if kind == "head" else (a.heads * a.head_dim, a.kv_heads * a.head_dim)
    return (norm("self_attn.q_norm", q, part="attention"), norm("self_attn.k_norm", k, part="attention"))


def windows(keys: Keys, traits: Traits, layers: int) -> list[tuple[int | None, int | None]]:
    """Per layer: its sliding window and its attention chunk, None where it sees the whole context."""
    window = keys.integer("sliding_window", low=0) or None
    chunk = keys.integer("attention_chunk_size", low=1)
    if keys.has("use_sliding_window") and not keys.flag("use_sliding_window"):
        window = None
    types = keys.texts("layer_types")
    if types and traits.window != "none":
        return [
            (window if t == "sliding_attention" else None, chunk if t == "chunked_attention" else None)
            for t in types[:layers]
        ]
    if window is None or traits.window == "none":
        return [(None, None)] * layers
    if traits.window == "flagged":
        if not keys.flag("use_sliding_window"):
            return [(None, None)] * layers
        first = keys.integer("max_window_layers") or 0
        return [(window if i >= first else None, None) for i in range(layers)]
    if traits.window == "all":
        return [(window, None)] * layers
    letters = keys.config.get("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= set("LG"):
        return [(None if letters[i % len(letters)] == "G" else window, None) for i in range(layers)]
    every = keys.integer("sliding_window_pattern", "_sliding_window_pattern", low=1) or traits.full_every
    return [(None if every and (i + 1) % every == 0 else window, None) for i in range(layers)]


def outline(keys: Keys, shape: Shape, traits: Traits, layers: tuple[LayerFacts, ...]) -> Outline:
    """Put embedding and head around `layers`."""
    tied = keys.flag("tie_word_embeddings", "tie_embeddings", "weight_tying", default=traits.tied)
    embedding = [Weight("embed_tokens", "embedding", (Span(shape.vocab),), shape.hidden, "vocab")]
    if traits.learned_positions is not None:
        rows = keys.required("max_position_embeddings", "n_positions") + traits.learned_positions
        embedding.append(Weight("embed_positions", "embedding", (Span(rows),), shape.hidden))
    if traits.embedding_norm:
        embedding.append(norm("embed_norm", shape.hidden, bias=traits.norm_bias))
    head = [norm("norm", shape.hidden, bias=traits.norm_bias)] if traits.final_norm else []
    if not tied:
        head.append(Weight("lm_head", "lm_head", (Span(shape.vocab),), shape.hidden, "vocab", bias=traits.head_bias))
    return Outline(shape, tuple(embedding), layers, tuple(head), tied, traits.rotary)
