"""One rank's memory: each term, what is requested of the card, what is left for the KV cache and what stays free."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.plan.memory.activation import activation, peak_of
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.context import Context, context
from trimtab.plan.memory.cpu import cpu_kv_cache
from trimtab.plan.memory.graphs import deducted_graphs, graph_memory
from trimtab.plan.memory.holes import hole_bytes
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.versions import keeps_what_it_quantises, loads_before_quantising
from trimtab.plan.memory.weights import weights
from trimtab.plan.parallel import Stage


class Rank(msgspec.Struct, frozen=True):
    """Memory of one rank, in GiB. `kv_cache` is what this rank has; the smallest rank decides the number of blocks."""

    rank: int
    stage: Stage
    card: Card
    weights: Derived[float]
    context: Context
    activation: Derived[float]
    graphs: Derived[float]
    deducted: Derived[float]
    requested: Derived[float]
    kv_cache: Derived[float]
    headroom: Derived[float]
    loading_gib: float = 0.0
    """The most that loading holds: above the weights where they are quantised after all are loaded."""
    steps_gib: float = 0.0
    """Of the activation peak, what steps take while serving: all but what the compiler takes once."""


def rank_all(
    settings: Settings, model: ModelFacts, cut: Sequence[Stage], cards: Sequence[Card], *, stored: ModelFacts
) -> tuple[Rank, ...]:
    """One Rank per card; ranks of a stage on equal cards share their numbers. `stored`: the model as it is read.

    V0 gathers the logits on the first tensor rank alone (0.7 layers/logits_processor.py), so only that one samples.
    """
    made: dict[tuple[int, Card, bool], Rank] = {}
    found: list[Rank] = []
    for number in range(settings.world_size):
        at = number // settings.tensor_parallel_size
        card = cards[number]
        samples = settings.engine == "V1" or number % settings.tensor_parallel_size == 0
        key = (at, card, samples)
        if key not in made:
            made[key] = _rank(settings, model, stored, number, cut[at], card, samples)
        same = made[key]
        found.append(same if same.rank == number else replace(same, rank=number))
    return tuple(found)


def _rank(
    settings: Settings, model: ModelFacts, stored: ModelFacts, number: int, stage: Stage, card: Card, samples: bool
) -> Rank:
    held = weights(settings, model, stage)
    whole = stored is not model and loads_before_quantising(settings.version)
    loading = weights(settings, stored, stage).value if whole else held.value
    if whole and keeps_what_it_quantises(settings.version):
        loading += held.value
    outside = context(settings, model, card, stage, holes_gib=hole_bytes(settings, stored, model, stage) / GIB)
    parts = peak_of(settings, model, stage, samples=samples)
    peak = activation(settings, parts)
    graphs = graph_memory(settings, model, stage)
    deducted = deducted_graphs(settings, model, stage)
    requested = Derived(
        card.total_gib * settings.gpu_memory_utilization,
        "GiB",
        "total x gpu_memory_utilization",
        "table",
        {"total_gib": card.total_gib, "gpu_memory_utilization": settings.gpu_memory_utilization},
    )
    kv_cache = _kv_cache(settings, card, requested, held, outside, peak, deducted)
    used = (
        outside.before.value
        + outside.counted.value
        + outside.uncounted_gib
        + held.value
        + peak.value
        + max(0.0, kv_cache.value)
    )
    headroom = Derived(
        card.total_gib - used - (graphs.value if settings.graphs else 0.0),
        "GiB",
        "total - context - weights - activation peak - KV cache - CUDA graphs",
        "computed",
    )
    found = (held, outside, peak, graphs, deducted, requested, kv_cache, headroom)
    return Rank(number, stage, card, *found, loading, parts.steps)


def _kv_cache(
    settings: Settings,
    card: Card,
    requested: Derived[float],
    held: Derived[float],
    outside: Context,
    peak: Derived[float],
    deducted: Derived[float],
) -> Derived[float]:
    if card.vendor == "cpu":
        return cpu_kv_cache(settings, card, held, outside.counted)
    if settings.kv_cache_memory_bytes is not None:
        return Derived(settings.kv_cache_memory_bytes / GIB, "GiB", "--kv-cache-memory-bytes", "declared")
    left = requested.value - held.value - outside.counted.value - peak.value - deducted.value
    return Derived(
        left,
        "GiB",
        "requested - weights - non-torch - activation peak - CUDA graph estimate",
        "computed",
        {
            "requested_gib": round(requested.value, 3),
            "weights_gib": round(held.value, 3),
            "non_torch_gib": round(outside.counted.value, 3),
            "activation_peak_gib": round(peak.value, 3),
            "cuda_graph_estimate_gib": round(deducted.value, 3),
        },
        note="vLLM v1/worker/gpu_worker.py determine_available_memory",
    )
