"""FlashInfer's workspace for the all-reduce that is fused with the norm after it: outside PyTorch, counted."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import MIB
from trimtab.plan.memory.settings import Settings

LARGEST_MIB = {90: {2: 64.0, 4: 2.0, 8: 0.5}, 100: {2: 64.0, 4: 32.0, 8: 1.0}, 103: {2: 64.0, 4: 64.0, 8: 2.0}}
"""Largest fused tensor by capability and ranks (0.26 compilation/passes/fusion/allreduce_rms_fusion.py
`FI_ALLREDUCE_FUSION_MAX_SIZE_MB`)."""
COPIES = 4
"""One buffer of the ranks' tensors and three of the lamport protocol (flashinfer 0.6.4 comm/trtllm_ar.py
`trtllm_create_ipc_workspace_for_all_reduce_fusion`)."""


def fusion_bytes(settings: Settings, model: ModelFacts) -> int:
    """Bytes that every rank takes in the first compiled run; 0 where the fusion is not on by default.

    On from 0.17 with tensor parallelism alone, on Hopper and data-centre Blackwell (config/vllm.py
    `enable_allreduce_rms_fusion`).
    """
    ranks = settings.tensor_parallel_size
    alone = settings.pipeline_parallel_size == 1 and settings.data_parallel_size == 1
    if not settings.flashinfer or settings.enforce_eager or settings.version < (0, 17) or not alone:
        return 0
    largest = LARGEST_MIB.get(round(settings.capability * 10), {}).get(ranks)
    if largest is None:
        return 0
    row = model.hidden_size * model.element_bytes
    tokens = min(int(largest * MIB) // row, settings.max_num_batched_tokens)
    return COPIES * ranks * tokens * row
