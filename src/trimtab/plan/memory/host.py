"""Host memory that a launch pins: swapped or offloaded KV cache and weights kept on the CPU."""

from __future__ import annotations

from trimtab.facts.derived import Derived
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import has_swap_space


def host_memory(settings: Settings) -> Derived[float]:
    """GiB over all ranks of one host: --swap-space and --cpu-offload-gb per GPU, --kv-offloading-size once.

    V1 took --swap-space as a flag without using it until it was removed (0.18 config/cache.py).
    """
    ranks = settings.world_size * settings.data_parallel_size
    swap = settings.swap_space * ranks if has_swap_space(settings.version, settings.engine) else 0.0
    parts = {
        "swap_space_gib": swap,
        "cpu_offload_gib": settings.cpu_offload_gb * ranks,
        "kv_offloading_gib": settings.kv_offloading_size,
    }
    return Derived(
        sum(parts.values()),
        "GiB",
        "swap_space x ranks + cpu_offload_gb x ranks + kv_offloading_size",
        "declared",
        {k: v for k, v in parts.items() if v},
    )
