"""Memory that is not PyTorch's: the CUDA context, kernels and libraries loaded, NCCL, and what of it vLLM counts."""

from __future__ import annotations

import msgspec

from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.fusion import fusion_bytes
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import counts_context, counts_what_is_gone, peak_rule, snapshot_after_nccl
from trimtab.plan.parallel import Stage

CONTEXT_GIB = 0.51
"""A fresh process's CUDA context with PyTorch's kernels on it: measured on H200, torch 2.11 (CUDA 13)."""
CONTEXT_SMALL_GIB = 0.28
"""The same on consumer and workstation cards: 0.35 non-torch in all was logged on a 3090 by 0.6.4."""
LOADED_GIB = 0.04
"""Kernel modules loaded between the snapshot and the end of the profile run: 0.01-0.09 in logs of 0.7 to 0.26."""
LOADED_BY_RELEASE = (((0, 27), 0.13), ((0, 21), 0.21), ((0, 20), 0.14))
"""The same in later releases, which load more libraries (FlashInfer's sampler from 0.21, PyTorch 2.13 from 0.27)."""
RESERVED_SLACK_GIB = 0.2
"""What 0.6.5 and 0.6.6 count too: segments held for the weights beyond them (utils.py memory_profiling)."""
LOADED_HOPPER_GIB = 0.22
"""The same with FlashAttention 3 on Hopper from 0.11: measured on H200; 0.06 with NCCL, which loads them before."""
LOADED_ROCM_GIB = 1.6
"""HIP's libraries and workspaces: a start of 0.6.3 on MI300X leaves this unexplained else."""
UNIFIED_HOST_GIB = 2.3
"""Where CPU and GPU share the memory, what the host's processes and caches grow by: 2.2 to 2.7 on GB10 in 0.11 to 0.19,
2 to 4 in 0.28; from 0.30 no more than elsewhere."""
NCCL_GIB = 1.0
"""NCCL channels and custom all-reduce buffers of one group: 1.51 - 0.51, measured with 2 x H200."""
NCCL_PCIE_GIB = 0.17
"""The same without NVLink: 0.20-0.25 non-torch in all was logged by 0.7 to 0.10 on PCIe cards."""
NCCL_LATER_PCIE_GIB = 0.1
"""Channels that NCCL of 0.20 and later opens at the first large message without NVLink, after the snapshot: of four
starts with TP 2 three leave 0 to 0.1, one without peer access 0.75."""
NCCL_GROUP_GIB = 0.48
"""Each further group of ranks: experts' and decode context's. 1.98 to 2.00 and 2.48 in all, 1.90 with data ranks,
measured with 2 x H200."""
NCCL_PIPELINE_GIB = 0.91
"""A group without custom all-reduce, as of a pipeline or of data ranks: 1.42 - 0.51, measured with 2 x H200."""

NVLS_GIB = 16 * 2 * (2 + 1) / 1024
"""What NCCL takes for every rank of a group whose NVSwitch reduces in flight: 16 channels, both ways, 2 MiB of credits
and eight steps of 128 KiB (nccl 2.27.5 src/transport/nvls.cc `ncclNvlsSetup`, `ncclNvlsBufferSetup`)."""


CPU_PROCESS_GIB = 0.9
"""Resident memory of a CPU worker beside its weights."""


class Context(msgspec.Struct, frozen=True):
    """What a rank's process holds beside weights and activation. `before`: held when the snapshot is taken; `counted`:
    charged; `uncounted_gib`: taken later and charged by no term."""

    before: Derived[float]
    counted: Derived[float]
    uncounted_gib: float = 0.0


def context(settings: Settings, model: ModelFacts, card: Card, stage: Stage, *, holes_gib: float = 0.0) -> Context:
    """The parts before and after vLLM's snapshot, in GiB. `holes_gib`: what PyTorch holds between its tensors and this
    release counts."""
    if card.vendor == "cpu":
        process = Derived(CPU_PROCESS_GIB, "GiB", "Python, PyTorch and vLLM in one worker", "assumed")
        return Context(Derived(0.0, "GiB", "no device context", "computed"), process)
    nccl = _nccl(settings, model, card)
    base = CONTEXT_GIB if card.total_gib > 60 else CONTEXT_SMALL_GIB
    after = snapshot_after_nccl(settings.version) and settings.engine == "V1"
    before = base + card.taken_gib + (nccl if after else 0.0)
    loaded = _loaded(settings, card, nccl > 0)
    fused = fusion_bytes(settings, model) / GIB
    host = _host(settings, card)
    states = _penalty_states(settings, model) / GIB if stage.last else 0.0
    charged = states if counts_what_is_gone(settings.version) else 0.0
    counted = loaded + fused + host + charged + holes_gib + (0.0 if after else nccl)
    if (0, 6, 5) <= settings.version < (0, 7):
        counted += RESERVED_SLACK_GIB
    if counts_context(settings.version, settings.engine):
        counted += base
    if peak_rule(settings.version, settings.engine) == "torch":
        counted = 0.0
    return Context(
        Derived(before, "GiB", "CUDA context + NCCL started before the snapshot", "table", {"nccl_gib": nccl}),
        Derived(
            counted,
            "GiB",
            "kernels and workspaces loaded during the profile run + what the release counts of context and NCCL",
            "table",
            {
                "loaded_gib": loaded,
                "nccl_gib": 0.0 if after else nccl,
                "fused_all_reduce_gib": round(fused, 3),
                "host_gib": host,
                "sampler_states_gib": round(charged, 3),
                "holes_gib": round(holes_gib, 3),
            },
            note="vLLM utils/mem_utils.py memory_profiling",
        ),
        states - charged,
    )


def _loaded(settings: Settings, card: Card, nccl: bool) -> float:
    if card.vendor == "amd":
        return LOADED_ROCM_GIB
    found = next((gib for since, gib in LOADED_BY_RELEASE if settings.version >= since), LOADED_GIB)
    if settings.runner == "v2" and settings.version < (0, 27):
        found = LOADED_GIB  # it neither samples by top-k nor captures while profiling
    if nccl and snapshot_after_nccl(settings.version):
        if settings.tensor_parallel_size == 1:
            return LOADED_GIB
        if not card.nvlink and settings.version >= (0, 20):
            return found + NCCL_LATER_PCIE_GIB
        return found if settings.version >= (0, 27) else LOADED_GIB
    if 9.0 <= card.capability < 10.0 and settings.version >= (0, 11):
        return max(found, LOADED_HOPPER_GIB)
    return found


def _penalty_states(settings: Settings, model: ModelFacts) -> int:
    """The V2 runner's counts of every token and mask of the prompt's, a row a sequence
    (0.27 v1/worker/gpu/sample/penalties.py): made after the weights, counted from 0.27."""
    if settings.runner != "v2" or model.task != "generate":
        return 0
    return settings.max_num_seqs * (model.vocab_size * 4 + model.vocab_size // 8)


def _host(settings: Settings, card: Card) -> float:
    """What the host's processes take while the model loads, where CPU and GPU share the memory (GB10, Jetson)."""
    unified = card.unified and card.vendor == "nvidia"
    return UNIFIED_HOST_GIB if unified and settings.engine == "V1" and settings.version < (0, 29) else 0.0


def _nccl(settings: Settings, model: ModelFacts, card: Card) -> float:
    if settings.world_size == 1:
        shares_experts = settings.data_parallel_size > 1 and settings.enable_expert_parallel
        ranks = settings.data_parallel_size
        both = NCCL_PIPELINE_GIB + NCCL_GROUP_GIB + 2 * _in_flight(settings, ranks)
        return both if shares_experts and card.nvlink else 0.0
    if not card.nvlink:
        return NCCL_PCIE_GIB
    if settings.tensor_parallel_size == 1:
        return NCCL_PIPELINE_GIB
    later = snapshot_after_nccl(settings.version) and any(x.moe for x in model.layers)
    groups = later + (settings.decode_context_parallel_size > 1)
    return NCCL_GIB + groups * NCCL_GROUP_GIB + _in_flight(settings, settings.tensor_parallel_size)


def _in_flight(settings: Settings, ranks: int) -> float:
    """GiB of a group whose NVSwitch reduces in flight: of more than two ranks up to NCCL 2.29 (`ncclNvlsInit`)."""
    return NVLS_GIB * ranks if settings.multicast and ranks > 2 else 0.0
