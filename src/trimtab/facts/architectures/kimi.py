"""Kimi Linear, Kimi K3 and GLM-5.3-Flash: Kimi Delta Attention with MLA in some layers."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import hyper_connections, matrix, mla_weights, norm
from trimtab.facts.architectures.decoder import Outline, latent_attentions
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.hybrids import assembled, dense_feed, expert_feed, joined, recurrent_layer
from trimtab.facts.architectures.recurrent import kimi_delta
from trimtab.facts.architectures.shape import LARGEST_WIDTH, Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight


def kimi_linear(keys: Keys, traits: Traits) -> Outline:
    """KDA, with MLA where `linear_attn_config.full_attn_layers` (from 1) or `layer_types` says.

    Kimi K3 adds gates, a narrower width for its experts and a mix of earlier layers' outputs (models/kimi_k3).
    """
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    if moe is not None:
        moe = replace(moe, latent=keys.integer("routed_expert_hidden_size", high=LARGEST_WIDTH) or 0)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    full = _full_layers(keys, shape.layers)
    latent = latent_attentions(keys, shape)
    kinds = [("mla" if i + 1 in full else "kda", "moe" if s else "mlp") for i, s in enumerate(sparse)]

    def parts(mixer: str, feed: str) -> LayerFacts:
        body = recurrent_layer(kimi_delta(keys, shape.hidden))
        if mixer == "mla":
            body = LayerFacts(latent[0], _latent_weights(keys, shape, latent[0]))
        fed = expert_feed(shape, moe, correction=True) if moe and feed == "moe" else dense_feed(shape)
        layer = joined(body, fed, shape)
        return replace(layer, weights=layer.weights + _beside(keys, shape, layer.moe))

    found = assembled(keys, shape, kinds, parts, traits)
    if keys.integer("attn_res_block_size"):
        found = replace(found, head=(*_residual_mix(shape, "output_attn_res"), *found.head))
    return found


def _full_layers(keys: Keys, layers: int) -> set[int]:
    types, own = keys.texts("layer_types"), keys.sub("linear_attn_config")
    if types:
        return {i + 1 for i, t in enumerate(types) if t in ("full_attention", "indexed_attention")}
    if own is not None:
        return set(own.integers("full_attn_layers"))
    keys.assumed.append("MLA in every fourth layer (the config class's rule)")
    return {i + 1 for i in range(layers) if i % 4 == 3}


def _latent_weights(keys: Keys, shape: Shape, a: Attention) -> tuple[Weight, ...]:
    """MLA, with an output gate per head where the config asks for one (kimi_k3/nvidia/mla.py)."""
    found = mla_weights(shape, a, nope=keys.integer("qk_nope_head_dim") or 0)
    if keys.flag("mla_use_output_gate"):
        gate = Span(a.heads * a.v_head_dim, a.heads)
        found += (Weight("self_attn.g_proj", "attention", (gate,), shape.hidden, "rows"),)
    return found


def _beside(keys: Keys, shape: Shape, moe: Moe | None) -> tuple[Weight, ...]:
    """What a layer holds beside its mixer and feed-forward: hyper-connections (GLM), attention residuals (Kimi K3)."""
    found: tuple[Weight, ...] = ()
    streams = keys.integer("hc_mult") or 0
    if streams:
        found += hyper_connections(shape.hidden, streams)
    if moe is not None and moe.latent and keys.flag("latent_moe_use_norm"):
        found += (norm("mlp.routed_expert_norm", moe.latent),)
    if keys.integer("attn_res_block_size"):
        found += _residual_mix(shape, "self_attention_res") + _residual_mix(shape, "mlp_res")
    return found


def _residual_mix(shape: Shape, name: str) -> tuple[Weight, ...]:
    """A norm and one row that weigh the outputs of earlier blocks (kimi_k3/nvidia/model.py)."""
    return norm(f"{name}_norm", shape.hidden), matrix(f"{name}_proj", "other", 1, shape.hidden)
