"""What several command rules ask of the model and the parallel sizes; no rule itself."""

from __future__ import annotations

from math import gcd

import msgspec

from trimtab.facts.model import ModelFacts
from trimtab.facts.weights import Weight
from trimtab.rules.command.context import CommandContext

REFINED_SINCE = "0.29"
"""From here on the scales of an expert's fp8 blocks are refined to fit its share (fused_moe/oracle/fp8.py)."""
SMALLEST_REFINED = 32
MERGED_MAY_DIFFER_SINCE = "0.14"
"""From here on merged column-parallel matrices (gate and up) need not be whole blocks (layers/linear.py)."""


class Cut(msgspec.Struct, frozen=True):
    """A weight whose share on a rank is not whole quantisation groups: `size` by `unit`."""

    weight: Weight
    size: int
    unit: int

    @property
    def experts(self) -> bool:
        return self.weight.copies > 1


def expert_tensor_ranks(context: CommandContext, tp: int) -> int:
    """Over how many ranks each expert is split: tensor x data parallel size, or 1 under expert parallelism."""
    if context.command.has("enable-expert-parallel"):
        return 1
    return tp * (context.integer("data-parallel-size", 1) or 1)


def first_cut(context: CommandContext, model: ModelFacts, tp: int) -> Cut | None:
    """The first weight that `tp` ranks would cut inside a quantisation group or block."""
    if model.quantisation is None:
        return None
    seen: set[int] = set()
    for layer in model.layers:
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        for weight in layer.weights:
            cut = _cut(context, model, weight, tp)
            if cut is not None:
                return cut
    return None


def _cut(context: CommandContext, model: ModelFacts, weight: Weight, tp: int) -> Cut | None:
    scheme = weight.scheme
    if scheme.block is not None:
        return _block_cut(context, model, weight, tp)
    integer = scheme.name.startswith(("awq", "gptq", "auto-round", "int"))
    if scheme.group > 0 and integer and weight.split == "columns" and weight.copies == 1 and weight.into % tp == 0:
        share = weight.into // tp
        return Cut(weight, share, scheme.group) if share % scheme.group else None
    return None


def _block_cut(context: CommandContext, model: ModelFacts, weight: Weight, tp: int) -> Cut | None:
    block_n, block_k = weight.scheme.block or (1, 1)
    if weight.copies > 1:
        ranks = expert_tensor_ranks(context, tp)
        inner = weight.into if weight.split == "columns" else weight.spans[0].rows
        share = -(-inner // ranks)
        if share % block_n == 0 and (ranks == 1 or share % block_k == 0):
            return None
        refined = gcd(block_n, block_k, share, model.hidden_size)
        if context.at_least(REFINED_SINCE) and refined >= SMALLEST_REFINED:
            return None
        return Cut(weight, share, block_n)
    if tp == 1 or weight.part not in ("mlp", "shared_experts") or weight.split not in ("rows", "columns"):
        return None
    if weight.split == "columns":
        share = weight.into // tp
        return Cut(weight, share, block_k) if share % block_k else None
    if context.at_least(MERGED_MAY_DIFFER_SINCE):
        return None
    share = weight.spans[0].on_rank(tp)
    return Cut(weight, share, block_n) if share % block_n else None


def heads_allow(model: ModelFacts, tp: int) -> bool:
    """Whether attention heads and KV heads spread evenly over `tp` ranks."""
    kv = model.kv_heads
    latent = any(layer.attention and layer.attention.kind == "mla" for layer in model.layers)
    return model.heads % tp == 0 and (latent or kv <= 0 or kv % tp == 0 or tp % kv == 0)
