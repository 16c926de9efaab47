"""CUDA graphs: which sizes are captured, what capturing takes, and the estimate that vLLM deducts beforehand."""

from __future__ import annotations

from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.allocator import GIB, MIB
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import Release, deducts_graphs, graphs_for_full_and_piecewise
from trimtab.plan.parallel import Stage


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
    if not settings.graphs:
        return Derived(0.0, "GiB", "no CUDA graphs", "computed")
    sizes = settings.cudagraph_capture_sizes
    largest = max(sizes, default=0)
    modes = 2 if settings.engine == "V1" and graphs_for_full_and_piecewise(settings.version) else 1
    pool = largest * (4 * model.hidden_size + model.vocab_size // settings.tensor_parallel_size) * model.element_bytes
    per_graph = stage.layers * MIB // 10
    value = (pool + per_graph * len(sizes) * modes) / GIB
    return Derived(
        value,
        "GiB",
        "largest batch's buffers + graphs x layers x 0.1 MiB",
        "assumed",
        {"graphs": len(sizes) * modes, "largest": largest, "layers": stage.layers},
        note="vLLM v1/worker/gpu_model_runner.py capture_model",
    )


def deducted_graphs(settings: Settings, model: ModelFacts, stage: Stage) -> Derived[float]:
    """GiB taken from the KV cache beforehand for graphs (0.20 and later, where the runner estimates)."""
    if not settings.graphs or not settings.estimate_graphs or not deducts_graphs(settings.version, settings.runner):
        return Derived(0.0, "GiB", "this release or runner deducts nothing for graphs", "computed")
    found = graph_memory(settings, model, stage)
    return Derived(found.value, "GiB", "estimate from trial captures: " + found.formula, found.source, found.inputs)
