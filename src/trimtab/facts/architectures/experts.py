"""Which layers hold experts, how many and how wide, under all the names that configs give them."""

from __future__ import annotations

from trimtab.facts.architectures.shape import LARGEST_WIDTH
from trimtab.facts.keys import Keys
from trimtab.facts.layers import Moe

MOST_EXPERTS = 1 << 16
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k", "top_k_experts",
             "experts_per_token", "num_selected_experts")  # fmt: skip
WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size")
SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_WIDTH = ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim",
                "moe_shared_expert_intermediate_size", "intermediate_size_shared")  # fmt: skip


def read_moe(keys: Keys, dense_width: int) -> Moe | None:
    """The experts of a layer that has them; None when the config has no more than one."""
    nested = keys.sub("ffn_config") or keys
    experts = nested.integer(*EXPERTS, high=MOST_EXPERTS) or 0
    if experts <= 1:
        nulls = [name for name in EXPERTS if name in nested.given and nested.given[name] is None]
        nested.assumed.extend(f"no experts: {name} is null" for name in nulls)
        return None
    width = _first(nested, WIDTH, high=LARGEST_WIDTH)
    if width is None:
        width = nested.integer("ffn_hidden_size", high=LARGEST_WIDTH) or dense_width
    shared = _first(keys, SHARED, high=MOST_EXPERTS) or 0
    shared_width = keys.integer(*SHARED_WIDTH, high=LARGEST_WIDTH)
    if shared_width is None:
        shared_width = shared * width
    per_token = _first(nested, PER_TOKEN, high=MOST_EXPERTS)
    if per_token is None:
        keys.missing.append("num_experts_per_tok")
    return Moe(experts, per_token or 1, width, shared or bool(shared_width), shared_width)


def moe_layers(keys: Keys, layers: int) -> list[bool]:
    """For each layer whether it holds experts; each family has its own way to say so."""
    types = keys.texts("mlp_layer_types")
    if types:
        return [t in ("sparse", "moe") for t in types[:layers]]
    freq = keys.config.get("moe_layer_freq")
    if isinstance(freq, list):
        return [bool(n) for n in keys.integers("moe_layer_freq")[:layers]]
    if keys.has("moe_layer_start_index"):
        return _ernie(keys, layers)
    if keys.has("expert_layer_period"):
        period = keys.required("expert_layer_period")
        return [i % period == (keys.integer("expert_layer_offset") or 0) for i in range(layers)]
    dense = keys.integer("first_k_dense_replace", "num_dense_layers", "n_dense_layers", "moe_layer_offset") or 0
    every = keys.integer("moe_layer_freq", low=1) or 1
    step = keys.integer("decoder_sparse_step", low=1) or 1
    only = set(keys.integers("mlp_only_layers"))
    return [i >= dense and i % every == 0 and (i + 1) % step == 0 and i not in only for i in range(layers)]


def _ernie(keys: Keys, layers: int) -> list[bool]:
    start = _first(keys, ("moe_layer_start_index",), high=layers) or 0
    end = keys.config.get("moe_layer_end_index")
    last = end if isinstance(end, int) and end >= 0 else layers - 1
    every = keys.integer("moe_layer_interval", low=1) or 1
    return [start <= i <= last and (i + 1) % every == 0 for i in range(layers)]


def _first(keys: Keys, names: tuple[str, ...], high: int) -> int | None:
    """One number; where a config lists one per layer, the largest."""
    for name in names:
        if isinstance(keys.config.get(name), list):
            return max(keys.integers(name, high=high), default=None)
        found = keys.integer(name, high=high)
        if found is not None:
            return found
    return None
