"""FlashInfer's workspace for the all-reduce that is fused with the norm after it: outside PyTorch, counted."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import MIB
from trimtab.plan.memory.compiled import compiles
from trimtab.plan.memory.settings import Settings

LARGEST_MIB = {90: {2: 64.0, 4: 2.0, 8: 0.5}, 100: {2: 64.0, 4: 32.0, 8: 1.0}, 103: {2: 64.0, 4: 64.0, 8: 2.0}}
"""Largest fused tensor by capability and ranks (0.26 compilation/passes/fusion/allreduce_rms_fusion.py
`FI_ALLREDUCE_FUSION_MAX_SIZE_MB`)."""
SLOTS = 3
"""The lamport protocol's buffers, used in turn."""
GRANULE = 512 * MIB
"""What the driver recommends to round memory to that NVSwitch can multicast. FlashInfer asks for it even where it does
not multicast (flashinfer 0.6.4 to 0.6.14 comm/mnnvl.py `_get_allocation_prop`)."""


def fusion_bytes(settings: Settings, model: ModelFacts) -> int:
    """Bytes that every rank takes in the first compiled run; 0 where the fusion is not on by default.

    On from 0.17 with tensor parallelism alone, on Hopper and data-centre Blackwell (config/vllm.py
    `enable_allreduce_rms_fusion`), for models that are compiled, where cards share an NVSwitch: without multicast
    FlashInfer makes no workspace.
    """
    ranks = settings.tensor_parallel_size
    alone = settings.pipeline_parallel_size == 1 and settings.data_parallel_size == 1
    compiled = not settings.enforce_eager and compiles(settings.version, model.architecture)
    if not settings.flashinfer or not settings.multicast or not compiled or settings.version < (0, 17) or not alone:
        return 0
    largest = LARGEST_MIB.get(round(settings.capability * 10), {}).get(ranks)
    if largest is None:
        return 0
    row = model.hidden_size * model.element_bytes
    tokens = min(int(largest * MIB) // row, settings.max_num_batched_tokens)
    if settings.version >= (0, 25):
        return SLOTS * 2 * -(-tokens // ranks) * ranks * row
    return _three_buffers(ranks * tokens * row)


def _three_buffers(gathered: int) -> int:
    """TensorRT-LLM's buffers up to 0.24: the ranks' tensors, flags, and the lamport slots, each rounded up by itself
    (flashinfer 0.6.6 comm/trtllm_ar.py `trtllm_create_ipc_workspace_for_all_reduce_fusion`).

    From 0.25 one buffer for two halves of a two-shot reduction, in three slots (flashinfer 0.6.14
    comm/trtllm_mnnvl_ar.py `get_required_buffer_size_bytes`).
    """
    return sum(-(-size // GRANULE) * GRANULE for size in (gathered, 1, SLOTS * gathered))
