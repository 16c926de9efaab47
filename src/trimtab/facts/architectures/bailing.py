"""Ling and Ring 2.5 to 3 (bailing_moe_linear.py, bailing_moe_v3.py): MLA once a group, linear attention between."""

from __future__ import annotations

from trimtab.facts.architectures.blocks import mla_weights, norm
from trimtab.facts.architectures.decoder import Outline, latent_attentions
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.hybrids import assembled, dense_feed, expert_feed, joined, recurrent_layer
from trimtab.facts.architectures.recurrent import Mixer, full_delta, lightning
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import LayerFacts
from trimtab.facts.weights import Span, Weight


def bailing_linear(keys: Keys, traits: Traits) -> Outline:
    """2.5 and 2.6: lightning attention with norms of queries and keys."""
    return _grouped(keys, traits, second=True)


def bailing_v3(keys: Keys, traits: Traits) -> Outline:
    """3.0: Kimi Delta Attention with gates of full rank."""
    return _grouped(keys, traits, second=False)


def _grouped(keys: Keys, traits: Traits, *, second: bool) -> Outline:
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    full = _full_layers(shape.layers, keys.required("layer_group_size"), tail=not second)
    latent = latent_attentions(keys, shape)[0]
    kinds = [("mla" if i in full else "linear", "moe" if s else "mlp") for i, s in enumerate(sparse)]

    def parts(mixer: str, feed: str) -> LayerFacts:
        if mixer == "mla":
            weights = mla_weights(shape, latent, nope=keys.integer("qk_nope_head_dim") or 0)
            body = LayerFacts(latent, weights + _gate(keys, shape, latent.v_head_dim))
        else:
            body = recurrent_layer(_lightning(keys, shape) if second else full_delta(keys, shape))
        fed = expert_feed(shape, moe, correction=True) if moe and feed == "moe" else dense_feed(shape)
        return joined(body, fed, shape)

    return assembled(keys, shape, kinds, parts, traits)


def _full_layers(layers: int, group: int, *, tail: bool) -> set[int]:
    """The last of each group, and with `tail` all layers behind the last whole group."""
    whole = layers // max(1, group) * max(1, group) if tail else layers
    return {i for i in range(layers) if i >= whole or (i + 1) % max(1, group) == 0}


def _gate(keys: Keys, shape: Shape, value: int) -> tuple[Weight, ...]:
    grain = keys.text("gated_attention_proj_granularity_type")
    rows = {"head_wise": shape.heads, "element_wise": shape.heads * value}.get(grain, 0)
    return (Weight("self_attn.g_proj", "attention", (Span(rows, shape.heads),), shape.hidden, "rows"),) if rows else ()


def _lightning(keys: Keys, shape: Shape) -> Mixer:
    recurrent, weights = lightning(shape.hidden, shape.heads, shape.head_dim)
    if keys.flag("use_qk_norm"):
        weights += tuple(norm(f"self_attn.{n}_layernorm", shape.head_dim) for n in ("query", "key"))
    return recurrent, weights
