"""Encoders that vLLM serves for embeddings and scores: no cache, every token sees every other."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight


def bert(keys: Keys, traits: Traits) -> Outline:
    """BERT, RoBERTa and XLM-RoBERTa (bert.py, roberta.py), without the pooler, which embeddings do not load."""
    shape = read_shape(keys)
    h = shape.hidden
    positions = keys.required("max_position_embeddings")
    types = keys.integer("type_vocab_size") or 0
    embedding = [
        Weight("word_embeddings", "embedding", (Span(shape.vocab),), h, "vocab"),
        Weight("position_embeddings", "embedding", (Span(positions),), h, "vocab"),
        norm("embeddings.LayerNorm", h, bias=True),
    ]
    if types:
        embedding.append(Weight("token_type_embeddings", "embedding", (Span(types),), h, "vocab"))
    a = Attention("mha", shape.heads, shape.heads, shape.head_dim, shape.head_dim, encoder_only=True)
    weights = (
        *attention_weights(shape, a, qkv_bias=True, o_bias=True, name="attention"),
        *mlp_weights(h, shape.intermediate, gated=False, bias=True),
        *(norm(f"norm{i}", h, bias=True) for i in range(2)),
    )
    layers = (LayerFacts(a, weights, intermediate=shape.intermediate),) * shape.layers
    return Outline(shape, tuple(embedding), layers, (), tied=True, rotary=False, task="embed")


def modernbert(keys: Keys, traits: Traits) -> Outline:
    """ModernBERT (modernbert.py): gated, rotary, local attention but every `global_attn_every_n_layers`."""
    shape = read_shape(keys)
    h, every = shape.hidden, keys.integer("global_attn_every_n_layers", low=1) or 3
    local = keys.integer("local_attention", low=1) or 128
    embedding = (Weight("tok_embeddings", "embedding", (Span(shape.vocab),), h, "vocab"), norm("embeddings.norm", h))
    layers = []
    made: dict[tuple[bool, bool], LayerFacts] = {}
    for i in range(shape.layers):
        key = (i % every == 0, i == 0)
        if key not in made:
            window = None if key[0] else local
            a = Attention("mha", shape.heads, shape.heads, shape.head_dim, shape.head_dim, window, encoder_only=True)
            norms = tuple(norm(f"norm{n}", h) for n in range(1 if key[1] else 2))
            weights = norms + attention_weights(shape, a, name="attn") + mlp_weights(h, shape.intermediate)
            made[key] = LayerFacts(a, weights, intermediate=shape.intermediate)
        layers.append(made[key])
    return Outline(shape, embedding, tuple(layers), (norm("final_norm", h),), tied=True, task="embed")


def rotary_bert(keys: Keys, traits: Traits) -> Outline:
    """BERT with rotary positions (bert_with_rope.py): Nomic's, and Alibaba's GTE with a gated, half-biased MLP."""
    gte = keys.text("model_type") in ("new", "gte")
    inner = (
        keys.config
        if gte
        else {**keys.config, "intermediate_size": keys.config.get("n_inner") or keys.config.get("intermediate_size")}
    )
    shape = read_shape(Keys(inner, keys.missing, keys.assumed))
    h = shape.hidden
    bias = True if gte else keys.flag("qkv_proj_bias")
    gated = gte or keys.text("activation_function") == "swiglu"
    embedding = [Weight("word_embeddings", "embedding", (Span(shape.vocab),), h, "vocab")]
    types = keys.integer("type_vocab_size") or 0
    if types:
        embedding.append(Weight("token_type_embeddings", "embedding", (Span(types),), h, "vocab"))
    embedding.append(norm("embeddings.LayerNorm", h, bias=True))
    a = Attention("mha", shape.heads, shape.heads, shape.head_dim, shape.head_dim, encoder_only=True)
    mixer = attention_weights(shape, a, qkv_bias=bias, o_bias=bias, name="attn")
    mixer += tuple(norm(f"norm{i}", h, bias=True) for i in range(2))
    up, down = mlp_weights(h, shape.intermediate, gated=gated, bias=bias)
    dense = LayerFacts(a, (*mixer, replace(up, bias=bias and not gte), down), intermediate=shape.intermediate)
    every = keys.integer("moe_every_n_layers") or 0
    sparse = _nomic_experts(keys, shape, a, mixer) if every else dense
    layers = tuple(sparse if every and i % every == 1 else dense for i in range(shape.layers))
    return Outline(shape, tuple(embedding), layers, (), tied=True, task="embed")


def _nomic_experts(keys: Keys, shape: Shape, a: Attention, mixer: tuple[Weight, ...]) -> LayerFacts:
    """Ungated experts with one bias for all."""
    moe = Moe(keys.required("num_experts"), keys.required("moe_top_k"), shape.intermediate)
    fed = (*moe_weights(shape.hidden, moe, gated=False), norm("mlp.bias", shape.hidden))
    return LayerFacts(a, (*mixer, *fed), moe, moe.intermediate)
