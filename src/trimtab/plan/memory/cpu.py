"""The CPU engine's KV cache: its size is asked for, not what a profile run leaves."""

from __future__ import annotations

from trimtab.facts.derived import Derived
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.settings import Settings

DEFAULT_SPACE_GIB = 4.0
"""VLLM_CPU_KVCACHE_SPACE up to 0.13 (platforms/cpu.py); half of the NUMA node from 0.14 to 0.19."""


def cpu_kv_cache(settings: Settings, card: Card, weights: Derived[float], process: Derived[float]) -> Derived[float]:
    """GiB of KV cache: VLLM_CPU_KVCACHE_SPACE or --kv-cache-memory-bytes, else by release.

    From 0.20 what utilization x the node's memory leaves beside the worker's resident memory (v1/worker/cpu_worker.py).
    """
    if settings.cpu_kvcache_space_gib is not None:
        return Derived(settings.cpu_kvcache_space_gib, "GiB", "VLLM_CPU_KVCACHE_SPACE", "declared")
    if settings.kv_cache_memory_bytes is not None and settings.version >= (0, 20):
        return Derived(settings.kv_cache_memory_bytes / GIB, "GiB", "--kv-cache-memory-bytes", "declared")
    if settings.version < (0, 14):
        return Derived(DEFAULT_SPACE_GIB, "GiB", "default of VLLM_CPU_KVCACHE_SPACE", "table")
    if settings.version < (0, 20):
        return Derived(card.total_gib / 2, "GiB", "half of the NUMA node's memory", "table")
    left = card.total_gib * settings.gpu_memory_utilization - weights.value - process.value
    return Derived(
        left,
        "GiB",
        "total x gpu_memory_utilization - weights - process",
        "computed",
        {"total_gib": card.total_gib, "weights_gib": round(weights.value, 3), "process_gib": process.value},
    )
