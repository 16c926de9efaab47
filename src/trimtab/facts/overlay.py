"""Lays a quantisation and a dtype over weights, module by module, as vLLM decides which layers it packs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from trimtab.facts.layers import LayerFacts
from trimtab.facts.quantisation import UNQUANTISED, Quantisation, Scheme
from trimtab.facts.weights import Weight

PACKED_PARTS = frozenset({"attention", "mlp", "experts", "shared_experts", "mamba", "mtp"})
"""Parts that hold linear layers; embeddings, norms, routers and, nearly always, encoder towers are not packed."""
FUSED = {
    "qkv_proj": ("qkv_proj", "q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_up_proj", "gate_proj", "up_proj", "w1", "w3"),
    "down_proj": ("down_proj", "w2"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
    "in_proj_qkvz": ("in_proj_qkvz", "in_proj_qkv", "in_proj_z"),
    "in_proj_ba": ("in_proj_ba", "in_proj_b", "in_proj_a"),
    "experts.w13": ("experts", "experts.0.gate_proj", "experts.0.w1", "experts.gate_up_proj"),
    "experts.w2": ("experts", "experts.0.down_proj", "experts.0.w2", "experts.down_proj"),
}
"""The checkpoint's names of the modules that vLLM fuses (packed_modules_mapping of its models)."""
BLOCKS = {"mlp": ("mlp", "block_sparse_moe", "feed_forward", "mixer"), "self_attn": ("self_attn", "attention", "mixer")}


def pack_layers(layers: Iterable[LayerFacts], quantisation: Quantisation, first: int = 0) -> tuple[LayerFacts, ...]:
    """Layers, the first of which has the number `first`, with their schemes; equal ones stay the same object."""
    made: dict[tuple[int, tuple[Scheme, ...]], LayerFacts] = {}
    found = []
    for index, layer in enumerate(layers, first):
        schemes = tuple(_scheme(w, f"model.layers.{index}", quantisation) for w in layer.weights)
        key = (id(layer), schemes)
        if key not in made:
            weights = tuple(replace(w, scheme=s) for w, s in zip(layer.weights, schemes, strict=True))
            made[key] = replace(layer, weights=weights + _absorbed(weights))
        found.append(made[key])
    return tuple(found)


def pack_head(weights: Iterable[Weight], quantisation: Quantisation) -> tuple[Weight, ...]:
    """The output matrix is packed only where the config says so; of all methods only GGUF packs embeddings."""
    if not quantisation.lm_head:
        return tuple(weights)
    parts = ("lm_head", "embedding") if quantisation.method == "gguf" else ("lm_head",)
    scheme = quantisation.scheme
    return tuple(replace(w, scheme=scheme) if w.part in parts and w.into > 1 else w for w in weights)


def _absorbed(weights: Iterable[Weight]) -> tuple[Weight, ...]:
    """MLA keeps a 16-bit copy of a packed kv_b_proj (mla_attention.py, process_weights_after_loading)."""
    return tuple(
        replace(w, name="self_attn.W_UK_W_UV", scheme=UNQUANTISED, loaded_only=True)
        for w in weights
        if w.name.endswith("kv_b_proj") and w.scheme is not UNQUANTISED and not w.loaded_only
    )


def _scheme(w: Weight, prefix: str, quantisation: Quantisation) -> Scheme:
    if w.part not in PACKED_PARTS or w.into == 1 or not w.packable or w.loaded_only:
        return UNQUANTISED
    return quantisation.scheme_for(tuple(_names(w.name, prefix)))


def _names(name: str, prefix: str) -> Iterable[str]:
    block, _, rest = name.partition(".")
    for outer in BLOCKS.get(block, (block,)):
        for inner in FUSED.get(rest, (rest,)):
            yield f"{prefix}.{outer}.{inner}" if rest else f"{prefix}.{outer}"
