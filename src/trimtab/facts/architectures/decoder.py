"""Decoders made of attention and a feed-forward block: one builder, steered by Traits."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, norm
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, AttentionKind, Draft, LayerFacts, Tower
from trimtab.facts.weights import Span, Weight


@dataclass(frozen=True, slots=True)
class Outline:
    """A model's body before quantisation is laid over it."""

    shape: Shape
    embedding: tuple[Weight, ...]
    layers: tuple[LayerFacts, ...]
    head: tuple[Weight, ...]
    tied: bool
    towers: tuple[Tower, ...] = ()
    drafts: tuple[Draft, ...] = ()
    notes: tuple[str, ...] = ()


def kind_of(heads: int, kv_heads: int) -> AttentionKind:
    if kv_heads == heads:
        return "mha"
    return "mqa" if kv_heads == 1 else "gqa"


def build_decoder(keys: Keys, traits: Traits) -> Outline:
    """Embedding, equal layers (but for their windows) and head of a plain decoder."""
    shape = read_shape(keys, kv_heads_default=traits.kv_heads_default, intermediate_factor=traits.intermediate_factor)
    layers = tuple(decoder_layers(keys, shape, traits))
    return outline(keys, shape, traits, layers)


def decoder_layers(keys: Keys, shape: Shape, traits: Traits) -> list[LayerFacts]:
    made: dict[tuple[int | None, int | None], LayerFacts] = {}
    found = []
    for window, chunk in windows(keys, traits, shape.layers):
        if (window, chunk) not in made:
            made[window, chunk] = plain_layer(keys, shape, traits, window, chunk)
        found.append(made[window, chunk])
    return found


def plain_layer(keys: Keys, shape: Shape, traits: Traits, window: int | None, chunk: int | None) -> LayerFacts:
    attention = Attention(
        kind_of(shape.heads, shape.kv_heads), shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim, window, chunk
    )
    weights = (
        *mixer_weights(keys, shape, traits, attention),
        *mlp_weights(
            shape.hidden, shape.intermediate, gated=traits.gated,
            bias=keys.flag("mlp_bias") if traits.mlp_bias is None else traits.mlp_bias,
        ),
    )  # fmt: skip
    return LayerFacts(attention, weights, intermediate=shape.intermediate)


def mixer_weights(keys: Keys, shape: Shape, traits: Traits, a: Attention) -> tuple[Weight, ...]:
    """Norms, qkv_proj, o_proj and the norms of queries and keys."""
    declared = keys.flag("attention_bias", "qkv_bias", "use_bias", "bias")
    qkv_bias = declared if traits.qkv_bias is None else traits.qkv_bias
    o_bias = declared if traits.o_bias is None else traits.o_bias
    found = [norm(f"norm{i}", shape.hidden, bias=traits.norm_bias) for i in range(traits.norms)]
    found += attention_weights(shape, a, qkv_bias=qkv_bias, o_bias=o_bias)
    if traits.qk_norm == "head":
        found += [norm("self_attn.q_norm", a.head_dim), norm("self_attn.k_norm", a.head_dim)]
    elif traits.qk_norm == "full":
        found += [norm("self_attn.q_norm", a.heads * a.head_dim), norm("self_attn.k_norm", a.kv_heads * a.head_dim)]
    return tuple(found)


def windows(keys: Keys, traits: Traits, layers: int) -> list[tuple[int | None, int | None]]:
    """Per layer: its sliding window and its attention chunk, None where it sees the whole context."""
    window = keys.integer("sliding_window", low=0) or traits.default_window
    chunk = keys.integer("attention_chunk_size", low=1) if traits.chunked else None
    if keys.has("use_sliding_window") and not keys.flag("use_sliding_window"):
        window = None
    types = keys.texts("layer_types")
    if types and traits.window != "none":
        return [
            (window if t == "sliding_attention" else None, chunk if t == "chunked_attention" else None)
            for t in types[:layers]
        ]
    if window is None or traits.window == "none":
        return [(None, chunk)] * layers
    if traits.window == "flagged":
        if not keys.flag("use_sliding_window"):
            return [(None, None)] * layers
        first = keys.integer("max_window_layers") or 0
        return [(window if i >= first else None, None) for i in range(layers)]
    if traits.window == "all":
        return [(window, None)] * layers
    every = keys.integer("sliding_window_pattern", "_sliding_window_pattern", low=1) or traits.full_every
    return [(None if every and (i + 1) % every == 0 else window, None) for i in range(layers)]


def outline(keys: Keys, shape: Shape, traits: Traits, layers: tuple[LayerFacts, ...]) -> Outline:
    """Put embedding and head around `layers`."""
    tied = keys.flag("tie_word_embeddings", "tie_embeddings", default=traits.tied)
    embedding = [Weight("embed_tokens", "embedding", (Span(shape.vocab),), shape.hidden, "vocab")]
    if traits.learned_positions is not None:
        rows = keys.required("max_position_embeddings", "n_positions") + traits.learned_positions
        embedding.append(Weight("embed_positions", "embedding", (Span(rows),), shape.hidden))
    head = [norm("norm", shape.hidden, bias=traits.norm_bias)] if traits.final_norm else []
    if not tied:
        head.append(Weight("lm_head", "lm_head", (Span(shape.vocab),), shape.hidden, "vocab", bias=traits.head_bias))
    return Outline(shape, tuple(embedding), layers, tuple(head), tied)
