"""Mixers with a state of fixed size: Mamba 1 and 2, gated delta nets, KDA, lightning attention, short convolutions.

Weights and states as vLLM splits them (model_executor/layers/mamba/*, mamba_utils.py for the states).
"""

from __future__ import annotations

from trimtab.facts.architectures.blocks import matrix, norm
from trimtab.facts.architectures.shape import Shape
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Recurrent, StateShape
from trimtab.facts.weights import Span, Weight

Mixer = tuple[Recurrent, tuple[Weight, ...]]


def ssm_bytes(keys: Keys) -> int:
    """Bytes of a number in the "ssm" state: the model's 16 bit unless its config asks for float32."""
    return 4 if keys.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype") == "float32" else 2


def gated_delta_net(keys: Keys, hidden: int, *, name: str = "linear_attn") -> Mixer:
    """Qwen3-Next's and Qwen3.5's linear attention (gdn/qwen_gdn_linear_attn.py)."""
    k_heads, v_heads = keys.required("linear_num_key_heads"), keys.required("linear_num_value_heads")
    k_dim, v_dim = keys.required("linear_key_head_dim"), keys.required("linear_value_head_dim")
    kernel = keys.required("linear_conv_kernel_dim")
    key, value = Span(k_heads * k_dim, k_heads), Span(v_heads * v_dim, v_heads)
    per_head = Span(v_heads, v_heads)
    weights = (
        Weight(f"{name}.in_proj_qkvz", "mamba", (key, key, value, value), hidden, "rows"),
        Weight(f"{name}.in_proj_ba", "mamba", (per_head, per_head), hidden, "rows", packable=False),
        Weight(f"{name}.conv1d", "mamba", (key, key, value), kernel, "rows", packable=False),
        Weight(f"{name}.dt_bias", "mamba", (per_head,), split="rows"),
        Weight(f"{name}.A_log", "mamba", (per_head,), split="rows", element_bytes=4),
        norm(f"{name}.norm", v_dim, part="mamba"),
        matrix(f"{name}.out_proj", "mamba", hidden, value.rows, split="columns"),
    )
    states = (
        StateShape("conv", (key, key, value), (kernel - 1,), 2),
        StateShape("ssm", (per_head,), (v_dim, k_dim), ssm_bytes(keys)),
    )
    return Recurrent("gdn", states), weights


def mamba1(keys: Keys, hidden: int, *, inner_norms: bool = False, name: str = "mamba") -> Mixer:
    """Mamba 1 (mamba_mixer.py); `inner_norms`: norms of dt, B and C with weights (Jamba)."""
    state = keys.required("mamba_d_state", "state_size")
    kernel = keys.required("mamba_d_conv", "conv_kernel")
    inner = keys.integer("intermediate_size", low=1) if not keys.has("mamba_expand") else None
    inner = inner or hidden * (keys.integer("mamba_expand", "expand", low=1) or 2)
    rank_key = keys.config.get("mamba_dt_rank", keys.config.get("time_step_rank", "auto"))
    rank = -(-hidden // 16) if rank_key in ("auto", None) else keys.required("mamba_dt_rank", "time_step_rank")
    bias = keys.flag("mamba_proj_bias", "use_bias")
    span = Span(inner)
    weights = [
        Weight(f"{name}.in_proj", "mamba", (span, span), hidden, "rows", bias=bias),
        Weight(f"{name}.conv1d", "mamba", (span,), kernel, "rows", packable=False,
               bias=keys.flag("mamba_conv_bias", "use_conv_bias", default=True)),
        matrix(f"{name}.x_proj", "mamba", rank + 2 * state, inner, split="columns"),
        Weight(f"{name}.dt_proj", "mamba", (span,), rank, "rows", bias=True),
        Weight(f"{name}.A", "mamba", (span,), state, "rows", element_bytes=4, packable=False),
        Weight(f"{name}.D", "mamba", (span,), split="rows", element_bytes=4),
        matrix(f"{name}.out_proj", "mamba", hidden, inner, split="columns", bias=bias),
    ]  # fmt: skip
    if inner_norms:
        weights += [
            norm(f"{name}.{n}_layernorm", w, part="mamba") for n, w in (("dt", rank), ("b", state), ("c", state))
        ]
    states = (StateShape("conv", (span,), (kernel - 1,), 2), StateShape("ssm", (span,), (state,), ssm_bytes(keys)))
    return Recurrent("mamba1", states), tuple(weights)


def mamba2(keys: Keys, hidden: int, *, gated_norm: bool = True, name: str = "mixer") -> Mixer:
    """Mamba 2 (mamba_mixer2.py): heads and groups split over ranks, groups replicate past their number."""
    heads = keys.required("mamba_n_heads", "mamba_num_heads", "num_heads", "n_mamba_heads")
    state = keys.required("mamba_d_state", "ssm_state_size", "state_size")
    groups = keys.required("mamba_n_groups", "n_groups", "mamba_ngroups")
    kernel = keys.required("mamba_d_conv", "conv_kernel")
    head_dim = _mamba2_head_dim(keys, hidden, heads)
    inner, group = Span(heads * head_dim, heads), Span(groups * state, groups)
    per_head = Span(heads, heads)
    bias = keys.flag("mamba_proj_bias", "use_bias", "projectors_bias", "add_bias_linear")
    weights = [
        Weight(f"{name}.in_proj", "mamba", (inner, inner, group, group, per_head), hidden, "rows", bias=bias),
        Weight(f"{name}.conv1d", "mamba", (inner, group, group), kernel, "rows", packable=False,
               bias=keys.flag("mamba_conv_bias", "use_conv_bias", default=True)),
        *(Weight(f"{name}.{n}", "mamba", (per_head,), split="rows", element_bytes=4) for n in ("A", "D", "dt_bias")),
        Weight(f"{name}.out_proj", "mamba", (Span(hidden),), inner.rows, "columns", bias=bias),
    ]  # fmt: skip
    if gated_norm:
        weights.append(Weight(f"{name}.norm", "mamba", (inner,), split="rows"))
    states = (
        StateShape("conv", (inner, group, group), (kernel - 1,), 2),
        StateShape("ssm", (per_head,), (head_dim, state), ssm_bytes(keys)),
    )
    return Recurrent("mamba2", states), tuple(weights)


def _mamba2_head_dim(keys: Keys, hidden: int, heads: int) -> int:
    for name in ("mamba_d_head", "mamba_head_dim", "mamba_headdim"):
        if keys.has(name) and keys.config[name] != "auto":
            return keys.required(name)
    inner = keys.integer("mamba_d_ssm") or hidden * (keys.integer("mamba_expand", "expand") or 2)
    return inner // max(1, heads)


def kimi_delta(keys: Keys, hidden: int, *, name: str = "self_attn") -> Mixer:
    """Kimi Delta Attention (gdn/kimi_gdn_linear_attn.py); its recurrent state is float32.

    Kimi K3's gate has full rank, and its convolution is held in float32 (models/kimi_k3/nvidia/kda.py).
    """
    own = keys.sub("linear_attn_config") or keys
    heads = own.required("linear_num_heads", "num_heads")
    head_dim = own.required("linear_head_dim", "head_dim")
    kernel = own.required("linear_conv_kernel_dim", "short_conv_kernel_size")
    span, per_head = Span(heads * head_dim, heads), Span(heads, heads)
    gate: tuple[Weight, ...] = (
        matrix(f"{name}.g_a_proj", "mamba", head_dim, hidden),
        Weight(f"{name}.g_b_proj", "mamba", (span,), head_dim, "rows"),
    )
    conv = 2
    if own.flag("use_full_rank_gate"):
        gate, conv = (Weight(f"{name}.g_proj", "mamba", (span,), hidden, "rows"),), 4
    weights = (
        Weight(f"{name}.in_proj_qkv", "mamba", (span, span, span), hidden, "rows"),
        matrix(f"{name}.f_a_proj", "mamba", head_dim, hidden),
        Weight(f"{name}.f_b_proj", "mamba", (span,), head_dim, "rows"),
        Weight(f"{name}.b_proj", "mamba", (per_head,), hidden, "rows"),
        *gate,
        Weight(f"{name}.conv1d", "mamba", (span, span, span), kernel, "rows", packable=False, element_bytes=conv),
        Weight(f"{name}.A_log", "mamba", (per_head,), split="rows", element_bytes=4),
        Weight(f"{name}.dt_bias", "mamba", (span,), split="rows", element_bytes=4),
        norm(f"{name}.o_norm", head_dim, part="mamba"),
        matrix(f"{name}.o_proj", "mamba", hidden, span.rows, split="columns"),
    )
    states = (
        StateShape("conv", (span, span, span), (kernel - 1,), 2),
        StateShape("ssm", (per_head,), (head_dim, head_dim), 4),
    )
    return Recurrent("kda", states), weights


def full_delta(keys: Keys, shape: Shape, *, name: str = "self_attn") -> Mixer:
    """Ling 3's Kimi Delta Attention: every gate a matrix of full rank (models/bailing_moe_v3.py)."""
    heads, head_dim = shape.heads, shape.head_dim
    kernel = keys.required("short_conv_kernel_size")
    span, per_head = Span(heads * head_dim, heads), Span(heads, heads)
    weights = (
        Weight(f"{name}.qkvb_proj", "mamba", (span, span, span, per_head), shape.hidden, "rows"),
        *(Weight(f"{name}.{n}_proj", "mamba", (span,), shape.hidden, "rows") for n in ("f", "g")),
        Weight(f"{name}.conv1d", "mamba", (span, span, span), kernel, "rows", packable=False, element_bytes=4),
        Weight(f"{name}.A_log", "mamba", (per_head,), split="rows", element_bytes=4),
        Weight(f"{name}.dt_bias", "mamba", (span,), split="rows", element_bytes=4),
        norm(f"{name}.o_norm", head_dim, part="mamba"),
        matrix(f"{name}.o_proj", "mamba", shape.hidden, span.rows, split="columns"),
    )
    states = (
        StateShape("conv", (span, span, span), (kernel - 1,), 2),
        StateShape("ssm", (per_head,), (head_dim, head_dim), 4),
    )
    return Recurrent("kda", states), weights


def lightning(hidden: int, heads: int, head_dim: int, *, name: str = "self_attn") -> Mixer:
    """MiniMax-01's linear attention (models/minimax_text_01.py)."""
    span = Span(heads * head_dim, heads)
    weights = (
        Weight(f"{name}.qkv_proj", "mamba", (span, span, span), hidden, "rows"),
        Weight(f"{name}.output_gate", "mamba", (span,), hidden, "rows"),
        matrix(f"{name}.out_proj", "mamba", hidden, span.rows, split="columns"),
        Weight(f"{name}.norm", "mamba", (span,), split="rows"),
    )
    return Recurrent("lightning", (StateShape("ssm", (Span(heads, heads),), (head_dim, head_dim), 4),)), weights


def short_convolution(keys: Keys, hidden: int, *, name: str = "conv") -> Mixer:
    """LFM2's gated short convolution (layers/mamba/short_conv.py)."""
    kernel = keys.required("conv_L_cache")
    bias = keys.flag("conv_bias")
    span = Span(keys.integer("conv_dim", low=1) or hidden)
    weights = (
        Weight(f"{name}.in_proj", "mamba", (span, span, span), hidden, "rows", bias=bias),
        Weight(f"{name}.conv", "mamba", (span,), kernel, "rows", bias=bias, packable=False),
        Weight(f"{name}.out_proj", "mamba", (Span(hidden),), span.rows, "columns", bias=bias),
    )
    return Recurrent("short_conv", (StateShape("conv", (span,), (kernel - 1,), 2),)), weights
