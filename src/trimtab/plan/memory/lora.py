"""Slots that vLLM reserves for LoRA adapters: the same for every adapter, whatever is loaded into them."""

from __future__ import annotations

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.settings import Settings
from trimtab.plan.parallel import Stage

TARGETS = frozenset({"attention", "mlp", "shared_experts"})
"""Parts whose linear layers take adapters (lora/layers/)."""


def lora_bytes(settings: Settings, model: ModelFacts, stage: Stage) -> int:
    """Bytes of all slots on one rank: per linear layer max_loras pairs of rank x inputs and outputs x rank, 16 bit.

    Column-parallel layers keep whole inputs and split outputs, row-parallel ones the other way round
    (0.26 lora/layers/column_parallel_linear.py, row_parallel_linear.py `create_lora_weights`). Each expert has its own
    pairs from 0.12 (lora/layers/fused_moe.py; a start of 0.26 shows them).
    """
    if not settings.max_loras:
        return 0
    known: dict[int, int] = {}
    total = 0
    for layer in model.layers[stage.start : stage.end]:
        if id(layer) not in known:
            known[id(layer)] = _layer(settings, layer)
        total += known[id(layer)]
    return total * settings.max_loras * settings.max_lora_rank * 2


def _layer(settings: Settings, layer: LayerFacts) -> int:
    total = 0
    for weight in layer.weights:
        if weight.part in TARGETS and weight.into > 1 and not weight.loaded_only:
            _, rows, into = weight.rank_shape(settings.tensor_parallel_size)
            total += len(weight.spans) * into + rows
        elif weight.part == "experts" and weight.into > 1 and settings.version >= (0, 12):
            copies, rows, into = weight.rank_shape(settings.tensor_parallel_size, settings.expert_ranks)
            total += copies * (len(weight.spans) * into + rows)
    return total
