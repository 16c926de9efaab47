"""Step 3 and Step 3.5 (step3_text.py, step3p5.py): shared queries, or gated heads with windows."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, matrix, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.experts import read_moe
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight


def step3(keys: Keys, traits: Traits) -> Outline:
    """One KV head; queries come from a vector that all heads share, on every rank."""
    shape = read_shape(keys, kv_heads_default=1)
    moe = _with_shared(keys, read_moe(keys, shape.intermediate))
    sparse = _moe_layers(keys, shape.layers)
    a = Attention("mqa", shape.heads, 1, shape.head_dim, shape.head_dim)
    queries, dim = keys.integer("share_q_dim", low=1) or shape.head_dim, shape.head_dim
    mixer = (
        *(norm(f"norm{i}", shape.hidden) for i in range(2)),
        Weight("self_attn.qkv_proj", "attention", (Span(queries), Span(dim), Span(dim)), shape.hidden),
        norm("self_attn.inter_norm", queries),
        Weight("self_attn.wq", "attention", (Span(shape.heads * dim, shape.heads),), queries, "rows"),
        matrix("self_attn.o_proj", "attention", shape.hidden, shape.heads * dim, split="columns"),
    )
    layers = {s: _layer(shape, a, mixer, moe if s else None) for s in (False, True)}
    return outline(keys, shape, traits, tuple(layers[s] for s in sparse))


def step3p5(keys: Keys, traits: Traits) -> Outline:
    """Sliding layers have their own number of heads; every head has a gate where the config says so."""
    shape = read_shape(keys)
    moe = _with_shared(keys, read_moe(keys, shape.intermediate))
    sparse = _moe_layers(keys, shape.layers)
    other = keys.sub("attention_other_setting")
    heads = keys.integer("num_sliding_attention_heads", low=1) or shape.heads
    kv_heads = shape.kv_heads
    if other is not None:
        heads = other.integer("num_attention_heads", low=1) or heads
        kv_heads = other.integer("num_attention_groups", "num_key_value_heads", low=1) or kv_heads
    window = keys.integer("sliding_window", low=1)
    types = keys.texts("layer_types")
    kinds = [(i < len(types) and types[i] == "sliding_attention", s) for i, s in enumerate(sparse)]

    def layer(slides: bool, experts: bool) -> LayerFacts:
        own = replace(shape, heads=heads, kv_heads=kv_heads) if slides else shape
        dim = own.head_dim
        a = Attention(kind_of(own.heads, own.kv_heads), own.heads, own.kv_heads, dim, dim, window if slides else None)
        mixer = tuple(norm(f"norm{i}", shape.hidden) for i in range(2))
        mixer += attention_weights(own, a, qkv_bias=keys.flag("attention_bias"))
        mixer += tuple(norm(f"self_attn.{n}_norm", dim, part="attention") for n in ("q", "k"))
        if keys.flag("use_head_wise_attn_gate", default=True):
            mixer += (Weight("self_attn.g_proj", "attention", (Span(own.heads, own.heads),), shape.hidden, "rows"),)
        return _layer(shape, a, mixer, moe if experts else None, correction=keys.flag("use_moe_router_bias"))

    made = {kind: layer(*kind) for kind in dict.fromkeys(kinds)}
    return outline(keys, shape, traits, tuple(made[k] for k in kinds))


def _layer(
    shape: Shape, a: Attention, mixer: tuple[Weight, ...], moe: Moe | None, *, correction: bool = False
) -> LayerFacts:
    if moe is None:
        return LayerFacts(a, mixer + mlp_weights(shape.hidden, shape.intermediate), None, shape.intermediate)
    weights = mixer + moe_weights(shape.hidden, moe, correction_bias=correction, name="moe")
    return LayerFacts(a, weights, moe, moe.intermediate)


def _with_shared(keys: Keys, moe: Moe | None) -> Moe | None:
    width = keys.integer("share_expert_dim", "share_expert_dims") or 0
    return moe if moe is None else replace(moe, shared_experts=1 if width else 0, shared_intermediate=width)


def _moe_layers(keys: Keys, layers: int) -> list[bool]:
    """`moe_layers_enum` lists them as text ("3,4,5") or numbers; else `mlp_layer_types`; else all but the first."""
    listed = keys.config.get("moe_layers_enum")
    if isinstance(listed, str) and listed.replace(",", "").replace(" ", "").isdigit():
        at = {int(n) for n in listed.split(",") if n.strip()}
        return [i in at for i in range(layers)]
    if isinstance(listed, list):
        at = set(keys.integers("moe_layers_enum"))
        return [i in at for i in range(layers)]
    types = keys.texts("mlp_layer_types")
    return [types[i] in ("sparse", "moe") if i < len(types) else i > 0 for i in range(layers)]
