"""Decoders whose layers mix attention with recurrent states, by family."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.recurrent import (
    Mixer,
    gated_delta_net,
    lightning,
    mamba1,
    mamba2,
    short_convolution,
)
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import BESIDE, Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Weight

Feed = tuple[Moe | None, tuple[Weight, ...], int]
"""A feed-forward part: its experts if any, its weights and its width."""
NO_FEED: Feed = (None, (), 0)


def plain_attention(keys: Keys, shape: Shape, *, gate: bool = False, qk_norm: bool = False) -> LayerFacts:
    """A grouped-query attention mixer alone, as a layer without norms."""
    a = Attention(kind_of(shape.heads, shape.kv_heads), shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim)
    bias = keys.flag("attention_bias")
    weights = attention_weights(shape, a, qkv_bias=bias, o_bias=bias, gate=gate)
    if qk_norm:
        weights += tuple(norm(f"self_attn.{n}_norm", shape.head_dim, part="attention") for n in ("q", "k"))
    return LayerFacts(a, weights)


def recurrent_layer(mixer: Mixer) -> LayerFacts:
    return LayerFacts(None, mixer[1], recurrent=mixer[0])


def joined(mixer: LayerFacts, feed: Feed, shape: Shape, norms: int = 2) -> LayerFacts:
    """A layer of norms, mixer and feed-forward part."""
    vectors = tuple(norm(f"norm{i}", shape.hidden) for i in range(norms))
    return replace(mixer, weights=vectors + mixer.weights + feed[1], moe=feed[0], intermediate=feed[2])


def assembled(
    keys: Keys, shape: Shape, kinds: list[tuple[str, str]], parts: Callable[[str, str], LayerFacts], traits: Traits
) -> Outline:
    """Layers by kind (mixer, feed-forward); equal kinds become the same object."""
    made = {kind: parts(*kind) for kind in dict.fromkeys(kinds)}
    return outline(keys, shape, traits, tuple(made[k] for k in kinds))


def dense_feed(shape: Shape, *, width: int | None = None, gated: bool = True, bias: bool = False) -> Feed:
    inner = width or shape.intermediate
    return None, mlp_weights(shape.hidden, inner, gated=gated, bias=bias), inner


def expert_feed(shape: Shape, moe: Moe, *, shared_gate: bool = False, correction: bool = False) -> Feed:
    weights = moe_weights(shape.hidden, moe, shared_gate=shared_gate, correction_bias=correction)
    return moe, weights, moe.intermediate


def qwen_next(keys: Keys, traits: Traits) -> Outline:
    """Qwen3-Next, Qwen3.5 and Qwen3.6: gated delta nets with gated attention every `full_attention_interval`."""
    shape = read_shape(keys, intermediate_factor=0)
    moe = read_moe(keys, shape.intermediate)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    types = keys.texts("layer_types")
    every = keys.integer("full_attention_interval", low=1) or 4
    whole = ("full_attention", "indexed_attention")
    full = [types[i] in whole if i < len(types) else (i + 1) % every == 0 for i in range(shape.layers)]
    kinds = [("full" if f else "gdn", "moe" if s else "mlp") for f, s in zip(full, sparse, strict=True)]

    def parts(mixer: str, feed: str) -> LayerFacts:
        one = plain_attention(keys, shape, gate=keys.flag("attn_output_gate", default=True), qk_norm=True)
        body = one if mixer == "full" else recurrent_layer(gated_delta_net(keys, shape.hidden))
        fed = expert_feed(shape, moe, shared_gate=True) if moe and feed == "moe" else dense_feed(shape)
        return joined(body, fed, shape)

    return assembled(keys, shape, kinds, parts, traits)


def qwen4_exp(keys: Keys, traits: Traits) -> Outline:
    """Qwen3.8-Flash-Next (vllm/models/qwen4_exp): Qwen3-Next's mixers and experts, and more not reckoned yet."""
    keys.missing.append(f"{BESIDE}the n-gram table, indexers and hyper-connections")
    return qwen_next(keys, traits)


def jamba(keys: Keys, traits: Traits) -> Outline:
    """Jamba: Mamba 1 with attention every `attn_layer_period` layers and experts every other."""
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    period, offset = keys.required("attn_layer_period"), keys.required("attn_layer_offset", low=0)
    kinds = [
        ("full" if period and i % period == offset else "mamba", "moe" if s else "mlp") for i, s in enumerate(sparse)
    ]

    def parts(mixer: str, feed: str) -> LayerFacts:
        body = recurrent_layer(mamba1(keys, shape.hidden, inner_norms=True))
        fed = expert_feed(shape, moe) if moe and feed == "moe" else dense_feed(shape)
        return joined(plain_attention(keys, shape) if mixer == "full" else body, fed, shape)

    return assembled(keys, shape, kinds, parts, traits)


def pure_mamba(keys: Keys, traits: Traits) -> Outline:
    """Mamba, Falcon Mamba and Mamba 2: layers of one norm and one mixer."""
    hidden, layers = keys.required("hidden_size", "d_model"), keys.required("num_hidden_layers", "n_layer")
    shape = Shape(hidden, layers, 0, 0, 0, 0, keys.required("vocab_size"))
    second = keys.has("n_groups") or keys.has("mamba_n_groups")

    def parts(mixer: str, feed: str) -> LayerFacts:
        mixed = mamba2(keys, hidden) if second else mamba1(keys, hidden, name="mixer")
        return joined(recurrent_layer(mixed), NO_FEED, shape, norms=1)

    return assembled(keys, shape, [("mamba", "")] * layers, parts, traits)


def mamba2_hybrid(keys: Keys, traits: Traits) -> Outline:
    """Bamba and Granite 4: Mamba 2 layers with attention where the config lists it, each with a feed-forward."""
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    types = keys.texts("layer_types") or keys.texts("layers_block_type")
    at = set(keys.integers("attn_layer_indices"))
    full = [types[i] in ("attention", "full_attention") if i < len(types) else i in at for i in range(shape.layers)]
    if not types and not at:
        keys.missing.append("layer_types")
    shared = keys.integer("shared_intermediate_size") or 0

    def parts(mixer: str, feed: str) -> LayerFacts:
        body = (
            plain_attention(keys, shape)
            if mixer == "full"
            else recurrent_layer(mamba2(keys, shape.hidden, name="mamba"))
        )
        fed = expert_feed(shape, moe) if moe else dense_feed(shape, width=shared or None)
        return joined(body, fed, shape)

    return assembled(keys, shape, [("full" if f else "mamba", "") for f in full], parts, traits)


def falcon_h1(keys: Keys, traits: Traits) -> Outline:
    """Falcon-H1: attention and Mamba 2 side by side in every layer."""
    shape = read_shape(keys)

    def parts(mixer: str, feed: str) -> LayerFacts:
        state, weights = mamba2(keys, shape.hidden, gated_norm=keys.flag("mamba_rms_norm"), name="mamba")
        one = plain_attention(keys, shape)
        both = replace(one, recurrent=state, weights=one.weights + weights)
        return joined(both, dense_feed(shape, bias=keys.flag("mlp_bias")), shape)

    return assembled(keys, shape, [("both", "")] * shape.layers, parts, traits)


def nemotron_h(keys: Keys, traits: Traits) -> Outline:
    """Nemotron-H and Nemotron 3: one mixer or one feed-forward per layer ("M", "*", "-", "E" in its pattern).

    A config that lists its layers may leave out how many they are (configs/nemotron_h.py counts them).
    """
    types = keys.texts("layers_block_type") or keys.texts("layer_types")
    counted = {"num_hidden_layers": len(types), **keys.given} if types else keys.given
    shape = read_shape(Keys(counted, keys.missing, keys.assumed, defaults=keys.config))
    words = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E", "full_attention": "*"}
    pattern = keys.text("hybrid_override_pattern").replace("|", "")
    if not pattern:
        pattern = "".join(words.get(t, "-") for t in types)
    if not pattern:
        keys.missing.append("hybrid_override_pattern")
    shape = replace(shape, layers=len(pattern))
    moe = _nemotron_moe(keys, shape) if "E" in pattern else None

    def parts(kind: str, feed: str) -> LayerFacts:
        if kind == "M":
            return joined(recurrent_layer(mamba2(keys, shape.hidden)), NO_FEED, shape, norms=1)
        if kind == "*":
            return joined(plain_attention(keys, shape), NO_FEED, shape, norms=1)
        if kind == "E" and moe is not None:
            weights = moe_weights(shape.hidden, moe, gated=False, correction_bias=True, name="mixer")
            return joined(LayerFacts(None, ()), (moe, weights, moe.intermediate), shape, norms=1)
        fed = dense_feed(shape, gated=False, bias=keys.flag("mlp_bias"))
        return joined(LayerFacts(None, ()), fed, shape, norms=1)

    return assembled(keys, shape, [(c, "") for c in pattern], parts, traits)


def _nemotron_moe(keys: Keys, shape: Shape) -> Moe | None:
    moe = read_moe(keys, shape.intermediate)
    if moe is None:
        return None
    shared = (keys.integer("moe_shared_expert_intermediate_size") or 0) * max(1, moe.shared_experts)
    return replace(moe, shared_intermediate=shared, latent=keys.integer("moe_latent_size") or 0)


def lfm2(keys: Keys, traits: Traits) -> Outline:
    """LFM2 and its MoE: short convolutions with attention where `layer_types` or `full_attn_idxs` says."""
    shape = read_shape(keys)
    width = keys.integer("block_ff_dim") or shape.intermediate
    if keys.flag("block_auto_adjust_ff_dim"):
        of = keys.integer("block_multiple_of", low=1) or 1
        width = int(2 * width / 3)
        width = int((keys.number("block_ffn_dim_multiplier", high=1024) or 1) * width)
        width = -(-width // of) * of
    moe = read_moe(keys, width)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    types, at = keys.texts("layer_types"), set(keys.integers("full_attn_idxs"))
    full = [types[i] == "full_attention" if i < len(types) else i in at for i in range(shape.layers)]

    def parts(mixer: str, feed: str) -> LayerFacts:
        body = recurrent_layer(short_convolution(keys, shape.hidden))
        if mixer == "full":
            body = plain_attention(keys, shape, qk_norm=True)
        fed = dense_feed(shape, width=width)
        if moe and feed == "moe":
            fed = expert_feed(shape, moe, correction=keys.flag("use_expert_bias"))
        return joined(body, fed, shape)

    kinds = [("full" if f else "conv", "moe" if s else "mlp") for f, s in zip(full, sparse, strict=True)]
    return assembled(keys, shape, kinds, parts, traits)


def minimax01(keys: Keys, traits: Traits) -> Outline:
    """MiniMax-Text-01 and MiniMax-M1: lightning attention with softmax attention where `attn_type_list` is 1."""
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    types, listed = keys.texts("layer_types"), keys.integers("attn_type_list")
    full = [types[i] == "full_attention" for i in range(len(types))] or [bool(n) for n in listed]
    if not full:
        keys.missing.append("attn_type_list")

    def parts(mixer: str, feed: str) -> LayerFacts:
        body = recurrent_layer(lightning(shape.hidden, shape.heads, shape.head_dim))
        fed = expert_feed(shape, moe) if moe else dense_feed(shape)
        return joined(plain_attention(keys, shape) if mixer == "full" else body, fed, shape)

    return assembled(keys, shape, [("full" if f else "linear", "") for f in full[: shape.layers]], parts, traits)
