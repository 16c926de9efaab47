"""The weights of one block, named and fused as vLLM holds them (qkv_proj, gate_up_proj, w13, w2)."""

from __future__ import annotations

from trimtab.facts.architectures.shape import Shape
from trimtab.facts.layers import Attention, Indexer, Moe
from trimtab.facts.weights import Part, Span, Weight


def matrix(name: str, part: Part, out: int, into: int, *, bias: bool = False, split: str = "none") -> Weight:
    """One plain matrix; `split` as in Weight."""
    return Weight(name, part, (Span(out),), into, split, bias=bias)  # type: ignore[arg-type]


def norm(name: str, width: int, *, bias: bool = False, part: Part = "norm") -> Weight:
    """A norm's vector, with its bias where it is a LayerNorm."""
    return Weight(name, part, (Span(width),), 1, bias=bias)


def attention_weights(
    shape: Shape,
    a: Attention,
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    gate: bool = False,
    name: str = "self_attn",
) -> tuple[Weight, ...]:
    """Fused qkv_proj (KV heads replicate past their count) and o_proj. `gate`: queries carry an output gate.

    vLLM: model_executor/layers/linear.py, QKVParallelLinear.
    """
    q = a.heads * a.head_dim * (2 if gate else 1)
    spans = (Span(q, a.heads), Span(a.kv_heads * a.head_dim, a.kv_heads), Span(a.kv_heads * a.v_head_dim, a.kv_heads))
    return (
        Weight(f"{name}.qkv_proj", "attention", spans, shape.hidden, "rows", bias=qkv_bias),
        matrix(f"{name}.o_proj", "attention", shape.hidden, a.heads * a.v_head_dim, bias=o_bias, split="columns"),
    )


def mla_weights(
    shape: Shape, a: Attention, *, nope: int, bias: bool = False, name: str = "self_attn"
) -> tuple[Weight, ...]:
    """Multi-head latent attention: low-rank down-projections on every rank, up-projections split by head.

    vLLM: model_executor/models/deepseek_v2.py, DeepseekV2MLAAttention.
    """
    latent, rope = a.kv_lora_rank or 0, a.qk_rope_head_dim or 0
    found: list[Weight] = []
    if a.q_lora_rank:
        found += [
            Weight(f"{name}.fused_qkv_a_proj", "attention", (Span(a.q_lora_rank), Span(latent + rope)), shape.hidden,
                   bias=bias),
            norm(f"{name}.q_a_layernorm", a.q_lora_rank),
            Weight(f"{name}.q_b_proj", "attention", (Span(a.heads * (nope + rope), a.heads),), a.q_lora_rank, "rows"),
        ]  # fmt: skip
    else:
        found += [
            Weight(f"{name}.q_proj", "attention", (Span(a.heads * (nope + rope), a.heads),), shape.hidden, "rows"),
            matrix(f"{name}.kv_a_proj_with_mqa", "attention", latent + rope, shape.hidden, bias=bias),
        ]
    found += [
        norm(f"{name}.kv_a_layernorm", latent),
        Weight(f"{name}.kv_b_proj", "attention", (Span(a.heads * (nope + a.v_head_dim), a.heads),), latent, "rows"),
        matrix(f"{name}.o_proj", "attention", shape.hidden, a.heads * a.v_head_dim, bias=bias, split="columns"),
    ]
    if a.indexer is not None:
        found += indexer_weights(shape, a.indexer, a.q_lora_rank or shape.hidden, name=f"{name}.indexer")
    return tuple(found)


def indexer_weights(shape: Shape, indexer: Indexer, into: int, *, name: str) -> tuple[Weight, ...]:
    """Sparse attention's indexer, on every rank.

    vLLM: model_executor/models/deepseek_v2.py, Indexer.
    """
    return (
        matrix(f"{name}.wq_b", "attention", indexer.heads * indexer.head_dim, into),
        matrix(f"{name}.wk", "attention", indexer.head_dim, shape.hidden),
        norm(f"{name}.k_norm", indexer.head_dim, bias=True, part="attention"),
        Weight(f"{name}.weights_proj", "attention", (Span(indexer.heads),), shape.hidden, packable=False),
    )


def mlp_weights(
    hidden: int, inner: int, *, gated: bool = True, bias: bool = False, name: str = "mlp", part: Part = "mlp"
) -> tuple[Weight, ...]:
    """gate_up_proj (or up_proj) and down_proj."""
    up = (Span(inner), Span(inner)) if gated else (Span(inner),)
    return (
        Weight(f"{name}.{'gate_up_proj' if gated else 'up_proj'}", part, up, hidden, "rows", bias=bias),
        matrix(f"{name}.down_proj", part, hidden, inner, bias=bias, split="columns"),
    )


def moe_weights(
    hidden: int, moe: Moe, *, bias: bool = False, router_bias: bool = False, correction_bias: bool = False,
    gated: bool = True, shared_gate: bool = False, shared_bias: bool = False, name: str = "mlp",
) -> tuple[Weight, ...]:  # fmt: skip
    """Fused experts (w13, w2), the router on every rank and the shared experts as one dense block.

    vLLM: model_executor/layers/fused_moe/layer.py, FusedMoE.
    """
    up = (Span(moe.intermediate), Span(moe.intermediate)) if gated else (Span(moe.intermediate),)
    outer = moe.latent or hidden
    found = [
        Weight(f"{name}.gate", "router", (Span(moe.experts),), hidden, bias=router_bias),
        Weight(f"{name}.experts.w13", "experts", up, outer, "rows", moe.experts, bias),
        Weight(f"{name}.experts.w2", "experts", (Span(outer),), moe.intermediate, "columns", moe.experts, bias),
    ]
    if moe.latent:
        found += [
            matrix(f"{name}.fc1_latent_proj", "mlp", moe.latent, hidden),
            matrix(f"{name}.fc2_latent_proj", "mlp", hidden, moe.latent),
        ]
    if correction_bias:
        found.append(Weight(f"{name}.gate.e_score_correction_bias", "router", (Span(moe.experts),), element_bytes=4))
    if moe.shared_intermediate:
        found += mlp_weights(
            hidden, moe.shared_intermediate, gated=gated, bias=shared_bias, name=f"{name}.shared_experts",
            part="shared_experts",
        )  # fmt: skip
    if shared_gate:
        found.append(matrix(f"{name}.shared_expert_gate", "router", 1, hidden))
    return tuple(found)


def hyper_connections(hidden: int, streams: int) -> tuple[Weight, ...]:
    """Manifold hyper-connections around attention and feed-forward, in float32 (glm5next/common/model.py)."""
    mix = (2 + streams) * streams
    found: list[Weight] = []
    for part in ("attn", "ffn"):
        found += [
            Weight(f"hc_{part}_fn", "other", (Span(mix),), streams * hidden, element_bytes=4),
            Weight(f"hc_{part}_base", "other", (Span(mix),), element_bytes=4),
            Weight(f"hc_{part}_scale", "other", (Span(3),), element_bytes=4),
        ]
    return tuple(found)
