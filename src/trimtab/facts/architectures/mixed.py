"""Decoders whose attention layers differ in shape: Llama 4, Gemma 3n and 4, MiMo-V2, and those with cross-attention."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.facts.architectures.blocks import attention_weights, matrix, mlp_weights, moe_weights, norm
from trimtab.facts.architectures.decoder import Outline, kind_of, outline
from trimtab.facts.architectures.experts import moe_layers, read_moe
from trimtab.facts.architectures.shape import Shape, read_shape
from trimtab.facts.architectures.traits import Traits
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Attention, LayerFacts, Moe
from trimtab.facts.weights import Span, Weight

Key = tuple[object, ...]


def llama4(keys: Keys, traits: Traits) -> Outline:
    """Llama 4 (llama4.py): chunked but where `no_rope_layers` is 0; experts every `interleave_moe_layer_step`."""
    shape = read_shape(keys)
    dense = keys.integer("intermediate_size_mlp", low=1) or shape.intermediate
    moe = read_moe(keys, shape.intermediate)
    if moe is not None:
        moe = replace(moe, shared_experts=1, shared_intermediate=moe.intermediate)
    step = keys.integer("interleave_moe_layer_step", low=1) or 1
    listed, no_rope = keys.integers("moe_layers"), keys.integers("no_rope_layers")
    interval = keys.integer("no_rope_layer_interval", low=1) or 4
    chunk = keys.integer("attention_chunk_size", low=1)
    made: dict[Key, LayerFacts] = {}
    layers = []
    for i in range(shape.layers):
        rope = bool(no_rope[i]) if i < len(no_rope) else (i + 1) % interval != 0
        sparse = moe is not None and (i in listed if listed else (i + 1) % step == 0)
        if (rope, sparse) not in made:
            a = plain(shape, chunk=chunk if rope else None)
            feed = moe_weights(shape.hidden, moe, name="feed_forward") if moe and sparse else ()
            feed = feed or mlp_weights(shape.hidden, dense, name="feed_forward")
            made[rope, sparse] = one(shape, a, feed, moe if sparse else None, dense, bias=keys.flag("attention_bias"))
        layers.append(made[rope, sparse])
    return outline(keys, shape, traits, tuple(layers))


def plain(shape: Shape, *, window: int | None = None, chunk: int | None = None, shares_kv: bool = False) -> Attention:
    kind = kind_of(shape.heads, shape.kv_heads)
    return Attention(
        kind, shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim, window, chunk, shares_kv=shares_kv
    )


def one(
    shape: Shape, a: Attention, feed: tuple[Weight, ...], moe: Moe | None, width: int, *, norms: int = 2,
    bias: bool = False, extra: tuple[Weight, ...] = (),
) -> LayerFacts:  # fmt: skip
    vectors = tuple(norm(f"norm{i}", shape.hidden) for i in range(norms))
    weights = vectors + attention_weights(shape, a, qkv_bias=bias, o_bias=bias) + extra + feed
    return LayerFacts(a, weights, moe, moe.intermediate if moe else width)


def head_norms(a: Attention) -> tuple[Weight, ...]:
    names = ("q",) if a.shares_kv else ("q", "k")
    return tuple(norm(f"self_attn.{n}_norm", a.head_dim, part="attention") for n in names)


def gemma4(keys: Keys, traits: Traits) -> Outline:
    """Gemma 4 (gemma4.py): full layers have their own head size and heads; late layers may read earlier layers' KV."""
    shape = read_shape(keys)
    types = keys.texts("layer_types") or tuple(
        "full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(shape.layers)
    )
    full = replace(
        shape,
        head_dim=keys.defaulted("global_head_dim", default=512, low=1),
        kv_heads=keys.integer("num_global_key_value_heads", low=1) or shape.kv_heads,
    )
    first_shared = shape.layers - (keys.integer("num_kv_shared_layers") or 0)
    moe = read_moe(keys, shape.intermediate)
    made: dict[Key, LayerFacts] = {}
    layers = []
    for i in range(shape.layers):
        sliding = i < len(types) and types[i] == "sliding_attention"
        key = (sliding, i >= first_shared)
        if key not in made:
            made[key] = _gemma4_layer(keys, shape if sliding else full, moe, sliding, i >= first_shared)
        layers.append(made[key])
    found = outline(keys, shape, traits, tuple(layers))
    return replace(found, embedding=found.embedding + per_layer_embedding(keys, shape))


def _gemma4_layer(keys: Keys, shape: Shape, moe: Moe | None, sliding: bool, shared: bool) -> LayerFacts:
    a = plain(shape, window=keys.integer("sliding_window", low=1) if sliding else None, shares_kv=shared)
    wide = 2 if shared and keys.flag("use_double_wide_mlp") else 1
    width = shape.intermediate * wide
    feed = mlp_weights(shape.hidden, width)
    norms = 4
    if moe is not None:
        feed += moe_weights(shape.hidden, moe, name="moe")
        feed += (norm("router.scale", shape.hidden), norm("router.per_expert_scale", moe.experts))
        norms = 7
    extra = head_norms(a) + per_layer_gate(keys, shape) + (norm("layer_scalar", 1),)
    layer = one(shape, a, feed, moe, width, norms=norms, extra=extra)
    if moe is not None:
        layer = replace(layer, intermediate=width)
    return _without_shared_kv(layer) if shared else layer


def _without_shared_kv(layer: LayerFacts) -> LayerFacts:
    """A layer that reads another's cache has a q_proj alone."""
    weights = tuple(replace(w, spans=w.spans[:1]) if w.name.endswith("qkv_proj") else w for w in layer.weights)
    return replace(layer, weights=weights)


def per_layer_gate(keys: Keys, shape: Shape) -> tuple[Weight, ...]:
    width = keys.integer("hidden_size_per_layer_input") or 0
    if not width:
        return ()
    return (
        matrix("per_layer_input_gate", "mlp", width, shape.hidden),
        matrix("per_layer_projection", "mlp", shape.hidden, width),
        norm("post_per_layer_input_norm", shape.hidden),
    )


def per_layer_embedding(keys: Keys, shape: Shape) -> tuple[Weight, ...]:
    """Gemma's embeddings that feed every layer; they are on the GPU with the rest."""
    width = keys.integer("hidden_size_per_layer_input") or 0
    if not width:
        return ()
    rows = keys.integer("vocab_size_per_layer_input", low=1) or shape.vocab
    return (
        Weight("embed_tokens_per_layer", "embedding", (Span(rows),), shape.layers * width, "vocab"),
        Weight("per_layer_model_projection", "embedding", (Span(shape.layers * width),), shape.hidden),
        norm("per_layer_projection_norm", width),
    )


def gemma3n(keys: Keys, traits: Traits) -> Outline:
    """Gemma 3n (gemma3n.py): AltUp streams, a low-rank side path, per-layer embeddings, late layers without own KV."""
    widths = keys.integers("intermediate_size") if isinstance(keys.config.get("intermediate_size"), list) else ()
    inner = replace_width(keys, max(widths)) if widths else keys
    shape = read_shape(inner)
    types = keys.texts("layer_types") or tuple(
        "full_attention" if (i + 1) % 5 == 0 else "sliding_attention" for i in range(shape.layers)
    )
    first_shared = shape.layers - (keys.integer("num_kv_shared_layers") or 0)
    streams, rank = keys.integer("altup_num_inputs") or 4, keys.integer("laurel_rank") or 64
    h = shape.hidden
    extra = (
        matrix("altup.correction_coefs", "other", streams, streams),
        matrix("altup.prediction_coefs", "other", streams * streams, streams),
        matrix("altup.modality_router", "other", streams, h),
        norm("altup.router_norm", h),
        norm("altup.correct_output_scale", h),
        matrix("laurel.linear_left", "mlp", rank, h),
        matrix("laurel.linear_right", "mlp", h, rank),
        norm("laurel.post_laurel_norm", h),
        *per_layer_gate(keys, shape),
    )
    made: dict[Key, LayerFacts] = {}
    layers = []
    for i in range(shape.layers):
        sliding = i < len(types) and types[i] == "sliding_attention"
        key = (sliding, i >= first_shared)
        if key not in made:
            window = keys.integer("sliding_window", low=1) if sliding else None
            a = plain(shape, window=window, shares_kv=i >= first_shared)
            norms = tuple(norm(f"self_attn.{n}_norm", a.head_dim, part="attention") for n in ("q", "k"))
            feed = mlp_weights(h, shape.intermediate)
            made[key] = one(shape, a, feed, None, shape.intermediate, norms=4, extra=norms + extra)
        layers.append(made[key])
    found = outline(keys, shape, traits, tuple(layers))
    streams_weights = tuple(
        matrix(f"{n}.{i}", "other", h, h)
        for n in ("altup_projections", "altup_unembed_projections")
        for i in range(streams - 1)
    )
    return replace(found, embedding=found.embedding + per_layer_embedding(keys, shape) + streams_weights)


def replace_width(keys: Keys, width: int) -> Keys:
    """The same config with one feed-forward width in place of a list."""
    return Keys({**keys.config, "intermediate_size": width}, keys.missing, keys.assumed)


def mimo_v2(keys: Keys, traits: Traits) -> Outline:
    """MiMo-V2 (mimo_v2.py): sliding layers have their own heads and a sink each; keys are wider than values."""
    shape = read_shape(keys)
    moe = read_moe(keys, shape.intermediate)
    sparse = moe_layers(keys, shape.layers) if moe else [False] * shape.layers
    pattern, types = keys.integers("hybrid_layer_pattern"), keys.texts("layer_types")
    sliding = [bool(n) for n in pattern] or [t == "sliding_attention" for t in types] or [False] * shape.layers
    value = keys.integer("v_head_dim", low=1) or shape.head_dim
    window = keys.integer("sliding_window", "sliding_window_size", low=1)
    heads = keys.integer("swa_num_attention_heads", low=1) or shape.heads
    kv_heads = keys.integer("swa_num_key_value_heads", low=1) or shape.kv_heads
    head_dim = keys.integer("swa_head_dim", low=1) or shape.head_dim
    swa_value = keys.integer("swa_v_head_dim", low=1) or value
    bias = keys.flag("attention_bias")

    def layer(slides: bool, experts: bool) -> LayerFacts:
        a = Attention(kind_of(shape.heads, shape.kv_heads), shape.heads, shape.kv_heads, shape.head_dim, value)
        extra: tuple[Weight, ...] = ()
        if slides:
            a = Attention(kind_of(heads, kv_heads), heads, kv_heads, head_dim, swa_value, window)
            extra = (Weight("self_attn.attention_sink_bias", "attention", (Span(heads, heads),), split="rows"),)
        feed = moe_weights(shape.hidden, moe, correction_bias=True) if moe and experts else ()
        feed = feed or mlp_weights(shape.hidden, shape.intermediate)
        one_layer = one(shape, a, feed, moe if experts else None, shape.intermediate, extra=extra)
        return one_layer if not bias else replace(one_layer, weights=tuple(_with_bias(w) for w in one_layer.weights))

    kinds = list(zip(sliding, sparse, strict=False))
    made = {kind: layer(*kind) for kind in dict.fromkeys(kinds)}
    return outline(keys, shape, traits, tuple(made[k] for k in kinds))


def _with_bias(w: Weight) -> Weight:
    return replace(w, bias=True) if w.name.endswith("qkv_proj") else w


def mllama(keys: Keys, traits: Traits) -> Outline:
    """Llama 3.2 Vision (mllama.py): layers in `cross_attention_layers` attend to the image."""
    shape = read_shape(keys)
    crossing = set(keys.integers("cross_attention_layers"))
    own = plain(shape)
    feed = mlp_weights(shape.hidden, shape.intermediate)
    layer = one(shape, own, feed, None, shape.intermediate)
    a = replace(own, cross=True)
    gates = (norm("cross_attn_attn_gate", 1), norm("cross_attn_mlp_gate", 1))
    cross = one(shape, a, feed, None, shape.intermediate, extra=head_norms(a) + gates)
    found = outline(keys, shape, traits, tuple(cross if i in crossing else layer for i in range(shape.layers)))
    table = Weight("embed_tokens", "embedding", (Span(shape.vocab + 8),), shape.hidden, "vocab")
    return replace(found, embedding=(table, *found.embedding[1:]))
