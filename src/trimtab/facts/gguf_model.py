"""ModelFacts of a GGUF file: its metadata read as a config, each weight packed as its tensors are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.facts.gguf import Gguf, config_of
from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts, read_model
from trimtab.facts.quantisation import UNQUANTISED, Scheme
from trimtab.facts.tensors import Tensor
from trimtab.facts.weights import Weight

MODULES = {
    "self_attn.qkv_proj": ("attn_q", "attn_k", "attn_v", "attn_qkv"),
    "self_attn.o_proj": ("attn_output",),
    "self_attn.q_proj": ("attn_q",),
    "self_attn.q_b_proj": ("attn_q_b",),
    "self_attn.fused_qkv_a_proj": ("attn_q_a", "attn_kv_a_mqa"),
    "self_attn.kv_a_proj_with_mqa": ("attn_kv_a_mqa",),
    "self_attn.kv_b_proj": ("attn_kv_b", "attn_k_b", "attn_v_b"),
    "mlp.gate_up_proj": ("ffn_gate", "ffn_up"),
    "mlp.up_proj": ("ffn_up",),
    "mlp.down_proj": ("ffn_down",),
    "mlp.experts.w13": ("ffn_gate_exps", "ffn_up_exps"),
    "mlp.experts.w2": ("ffn_down_exps",),
    "mlp.shared_experts.gate_up_proj": ("ffn_gate_shexp", "ffn_up_shexp"),
    "mlp.shared_experts.down_proj": ("ffn_down_shexp",),
}
"""vLLM's modules -> the GGUF tensors that they are made of."""


def read_gguf_model(gguf: Gguf) -> ModelFacts:
    """Facts of the model in this file. ModelError: an architecture that is not known.

    A tensor of an unknown type counts as 16 bit, an upper bound, and its type is named in `missing`.
    """
    facts = read_model(config_of(gguf), tensors=gguf.headers)
    tensors = {t.name: t for t in gguf.headers.tensors}
    missing = tuple(f"GGUF tensor {kind}" for kind in gguf.headers.unknown_types)
    made: dict[tuple[int, tuple[Scheme, ...]], LayerFacts] = {}
    layers = []
    for index, layer in enumerate(facts.layers):
        weights = tuple(_packed(w, MODULES.get(w.name, ()), f"blk.{index}.", tensors) for w in layer.weights)
        key = (id(layer), tuple(w.scheme for w in weights))
        layers.append(made.setdefault(key, replace(layer, weights=weights)))
    return replace(
        facts,
        layers=tuple(layers),
        embedding=tuple(_packed(w, ("token_embd",), "", tensors) for w in facts.embedding),
        head=tuple(_packed(w, ("output",), "", tensors) if w.part == "lm_head" else w for w in facts.head),
        missing=(*facts.missing, *missing),
    )


def _packed(w: Weight, names: tuple[str, ...], prefix: str, tensors: Mapping[str, Tensor]) -> Weight:
    """`w` at the mean bits of its tensors; vLLM holds the parts of a fused module as they are in the file."""
    found = [tensors[f"{prefix}{n}.weight"] for n in names if f"{prefix}{n}.weight" in tensors]
    elements = sum(t.elements for t in found)
    if not found or not elements or any(not t.size_bytes for t in found):
        return w
    bits = 8 * sum(t.size_bytes for t in found) / elements
    if bits == 16:
        return replace(w, scheme=UNQUANTISED)
    name = "gguf " + "+".join(dict.fromkeys(t.dtype for t in found))
    return replace(w, scheme=Scheme(name, bits, scale_bytes=0))
