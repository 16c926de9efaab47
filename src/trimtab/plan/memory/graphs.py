"""CUDA graphs: which sizes are captured, what capturing takes, and the estimate that vLLM deducts beforehand."""

from __future__ import annotations

from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB, MIB
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import Release, deducts_graphs, graphs_for_full_and_piecewise
from trimtab.plan.parallel import Stage

LAYER_BYTES = int(0.19 * MIB)
"""What the driver keeps per layer and graph; seven starts of 0.10 to 0.26 took 0.14 to 0.25 MiB."""


def capture_sizes(
    version: Release, max_num_seqs: int, max_num_batched_tokens: int, queries: int = 1
) -> tuple[int, ...]:
    """Batch sizes captured by default.

    From 0.11.1: 1, 2, 4, then by 8 to 256, then by 16 up to min(2 x sequences x queries, 512) (0.26 config/vllm.py
    `_set_cudagraph_sizes`); before, 1, 2, 4 and by 8 up to 512 (0.9.2 config.py), V0 up to the sequences.
    """
    if version >= (0, 12):
        most = min(max_num_seqs * queries * 2, 512, max_num_batched_tokens)
        sizes = [n for n in (1, 2, 4) if n <= most]
        sizes += range(8, min(most + 1, 256), 8)
        sizes += range(256, most + 1, 16)
        return tuple(sizes)
    most = min(512, max_num_batched_tokens) if version >= (0, 9) else min(max_num_seqs, 512)
    return (1, 2, 4, *range(8, most + 1, 8))


def graph_memory(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB that capture takes after the KV cache is there; 0 when nothing is captured."""
    sizes = settings.cudagraph_capture_sizes
    if not settings.graphs or not sizes:
        return Derived(0.0, "GiB", "no CUDA graphs", "computed")
    number = graph_count(settings)
    inner = max((x.intermediate for x in model.layers), default=0) // settings.tensor_parallel_size
    pool = max(sizes) * (3 * inner + 4 * model.hidden_size) * model.element_bytes
    value = (pool + number * stage.layers * LAYER_BYTES) / GIB
    return Derived(
        value,
        "GiB",
        "largest batch's layer buffers + graphs x layers x 0.19 MiB",
        "assumed",
        {"graphs": number, "largest": max(sizes), "layers": stage.layers},
        note="vLLM v1/worker/gpu_model_runner.py capture_model",
    )


def graph_count(settings: Settings) -> int:
    """Graphs captured: one a size, and from 0.11 whole-model ones for sizes that a decode batch can have."""
    sizes = settings.cudagraph_capture_sizes
    mode = settings.cudagraph_mode.upper()
    if settings.engine == "V0" or not graphs_for_full_and_piecewise(settings.version) or mode == "PIECEWISE":
        return len(sizes)
    most = settings.max_num_seqs * (1 + settings.num_speculative_tokens)
    whole = sum(n <= most for n in sizes)
    return whole if mode in ("FULL", "FULL_DECODE_ONLY") else len(sizes) + whole


def deducted_graphs(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB taken from the KV cache beforehand for graphs (0.20 and later, where the runner estimates)."""
    if not settings.graphs or not settings.estimate_graphs or not deducts_graphs(settings.version, settings.runner):
        return Derived(0.0, "GiB", "this release or runner deducts nothing for graphs", "computed")
    found = graph_memory(settings, model, stage)
    return Derived(found.value, "GiB", "estimate from trial captures: " + found.formula, found.source, found.inputs)
