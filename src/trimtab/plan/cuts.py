"""Which splits a quantised checkpoint stands: where a rank's share is not whole quantisation groups, and over heads."""

from __future__ import annotations

from math import gcd

import msgspec

from trimtab.facts.model import ModelFacts
from trimtab.facts.weights import Weight

REFINED_SINCE = (0, 29)
"""From here on the scales of an expert's fp8 blocks are refined to fit its share (fused_moe/oracle/fp8.py)."""
SMALLEST_REFINED = 32
MERGED_MAY_DIFFER_SINCE = (0, 14)
"""From here on merged column-parallel matrices (gate and up) need not be whole blocks (layers/linear.py)."""


class Ways(msgspec.Struct, frozen=True):
    """How a model is split, and by which vLLM (major, minor)."""

    tensor: int
    data: int
    experts_by_count: bool
    version: tuple[int, int]

    @property
    def expert_tensor_ranks(self) -> int:
        """Over how many ranks each expert is split: tensor x data parallel size, or 1 under expert parallelism."""
        return 1 if self.experts_by_count else self.tensor * self.data


class Cut(msgspec.Struct, frozen=True):
    """A weight whose share on a rank is not whole quantisation groups: `size` by `unit`."""

    weight: Weight
    size: int
    unit: int

    @property
    def experts(self) -> bool:
        return self.weight.copies > 1


def first_cut(model: ModelFacts, ways: Ways) -> Cut | None:
    """The first weight that these ranks would cut inside a quantisation group or block."""
    if model.quantisation is None:
        return None
    seen: set[int] = set()
    for layer in model.layers:
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        for weight in layer.weights:
            cut = _cut(model, weight, ways)
            if cut is not None:
                return cut
    return None


def _cut(model: ModelFacts, weight: Weight, ways: Ways) -> Cut | None:
    scheme, tensor = weight.scheme, ways.tensor
    if scheme.block is not None:
        return _block_cut(model, weight, ways)
    integer = scheme.name.startswith(("awq", "gptq", "auto-round", "int"))
    if scheme.group > 0 and integer and weight.split == "columns" and weight.copies == 1 and weight.into % tensor == 0:
        share = weight.into // tensor
        return Cut(weight, share, scheme.group) if share % scheme.group else None
    return None


def _block_cut(model: ModelFacts, weight: Weight, ways: Ways) -> Cut | None:
    block_n, block_k = weight.scheme.block or (1, 1)
    tensor = ways.tensor
    if weight.copies > 1:
        ranks = ways.expert_tensor_ranks
        inner = weight.into if weight.split == "columns" else weight.spans[0].rows
        share = -(-inner // ranks)
        if share % block_n == 0 and (ranks == 1 or share % block_k == 0):
            return None
        refined = gcd(block_n, block_k, share, model.hidden_size)
        if ways.version >= REFINED_SINCE and refined >= SMALLEST_REFINED:
            return None
        return Cut(weight, share, block_n)
    if tensor == 1 or weight.part not in ("mlp", "shared_experts") or weight.split not in ("rows", "columns"):
        return None
    if weight.split == "columns":
        share = weight.into // tensor
        return Cut(weight, share, block_k) if share % block_k else None
    if ways.version >= MERGED_MAY_DIFFER_SINCE:
        return None
    share = weight.spans[0].on_rank(tensor)
    return Cut(weight, share, block_n) if share % block_n else None


def heads_allow(model: ModelFacts, tensor: int) -> bool:
    """Whether attention heads and KV heads spread evenly over `tensor` ranks."""
    kv = model.kv_heads
    latent = any(layer.attention and layer.attention.kind == "mla" for layer in model.layers)
    return model.heads % tensor == 0 and (latent or kv <= 0 or kv % tensor == 0 or tensor % kv == 0)
