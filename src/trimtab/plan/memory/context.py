"""Memory that is not PyTorch's: the CUDA context, kernels and libraries loaded, NCCL, and what of it vLLM counts."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.facts.derived import Derived
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import counts_context, peak_rule, snapshot_after_nccl

CONTEXT_GIB = 0.51
"""A fresh process's CUDA context with PyTorch's kernels on it: measured on H200, torch 2.11 (CUDA 13)."""
LOADED_GIB = 0.22
"""Added between the snapshot and the end of the profile run on one card: cuBLAS workspaces and kernel modules."""
LOADED_AFTER_NCCL_GIB = 0.06
"""The same when NCCL ran before the snapshot (the modules were loaded by then): measured with 2 x H200."""
NCCL_GIB = 1.0
"""NCCL channels and custom all-reduce buffers of one group: 1.51 - 0.51, measured with 2 x H200."""
NCCL_PIPELINE_GIB = 0.91
"""Point-to-point channels of a pipeline: 1.42 - 0.51, measured with 2 x H200."""


CPU_PROCESS_GIB = 0.9
"""Resident memory of a CPU worker beside its weights."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a rank's process holds outside PyTorch. `before`: held when the snapshot is taken; `counted`: charged."""

    before: Derived[float]
    counted: Derived[float]


def context(settings: Settings, card: Card) -> Context:
    """The parts before and after vLLM's snapshot, in GiB."""
    if card.vendor == "cpu":
        process = Derived(CPU_PROCESS_GIB, "GiB", "Python, PyTorch and vLLM in one worker", "assumed")
        return Context(Derived(0.0, "GiB", "no device context", "computed"), process)
    nccl = _nccl(settings)
    after = snapshot_after_nccl(settings.version) and settings.engine == "V1"
    before = CONTEXT_GIB + (nccl if after else 0.0)
    loaded = LOADED_AFTER_NCCL_GIB if nccl and after else LOADED_GIB
    counted = loaded + (0.0 if after else nccl)
    if counts_context(settings.version, settings.engine):
        counted += CONTEXT_GIB
    if peak_rule(settings.version, settings.engine) == "torch":
        counted = 0.0
    return Context(
        Derived(before, "GiB", "CUDA context + NCCL started before the snapshot", "table", {"nccl_gib": nccl}),
        Derived(
            counted,
            "GiB",
            "kernels and workspaces loaded during the profile run + what the release counts of context and NCCL",
            "table",
            {"loaded_gib": loaded, "nccl_gib": 0.0 if after else nccl},
            note="vLLM utils/mem_utils.py memory_profiling",
        ),
    )


def _nccl(settings: Settings) -> float:
    if settings.tensor_parallel_size > 1:
        return NCCL_GIB
    return NCCL_PIPELINE_GIB if settings.pipeline_parallel_size > 1 else 0.0
