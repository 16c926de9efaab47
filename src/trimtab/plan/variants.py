"""Quantised checkpoints of a model by the names that publishers give them, and whether cards hold an fp8 cache."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from trimtab.engine.flags import FlagTable
from trimtab.errors import ModelError
from trimtab.facts.catalogue import lookup
from trimtab.plan.memory.versions import release
from trimtab.plan.unsupported import unsupported
from trimtab.plan.wish import Task

SCHEMES = ("FP8", "AWQ", "GPTQ-Int4")
"""Endings of quantised checkpoints' names, the one that loses least accuracy first."""
FP8_KV_CAPABILITY = 8.9
"""Triton's and FlashAttention's kernels hold fp8 caches from here on (v1/attention/backends/triton_attn.py)."""


def variants(task: Task) -> Iterator[tuple[str, Task]]:
    """(scheme, the task with that checkpoint) of each that these cards and this vLLM run; none of a quantised model.

    The name is read off the model's own: whether somebody has published it is for the reader to see.
    """
    if task.model.quantisation is not None or "quantization" in task.pinned or task.on_cpu:
        return
    for scheme in SCHEMES:
        name = f"{task.model_path}-{scheme}"
        try:
            found = lookup.find_model(name)
        except ModelError:
            return
        if found.tune:
            return  # of a fine-tune nobody knows what was published
        facts = found.facts()
        other = replace(task, model=facts, model_path=name, served_name=f"{task.served_name}-{scheme}")
        if unsupported(other) is None:
            yield scheme, other


def has_fp8_cache(task: Task) -> bool:
    """Whether this vLLM holds an fp8 cache on these cards."""
    flag = FlagTable.for_version(task.version).find("--kv-cache-dtype")
    known = flag is not None and ("fp8" in flag.choices or flag.open)
    cards = all(c.vendor == "nvidia" and c.capability >= FP8_KV_CAPABILITY for c in task.cards)
    return known and cards and release(task.version) >= (0, 9)
