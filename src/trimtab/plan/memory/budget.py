"""The budget of one launch: every rank's memory, what is left for the KV cache, and whether the server starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trimtab.errors import UsageError
from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.capacity import Capacity, capacity
from trimtab.plan.memory.activation import activation
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.context import Context, context
from trimtab.plan.memory.graphs import deducted_graphs, graph_memory
from trimtab.plan.memory.kv import Layout, layout
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.verdict import Verdict, judge
from trimtab.plan.memory.weights import weights
from trimtab.plan.parallel import Stage, stages

Platform = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True)
class Rank:
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


@dataclass(frozen=True, slots=True)
class Budget:
    """The whole launch. `tightest` is the rank with least KV memory; sizes of `capacity` are the launch's."""

    settings: Settings
    model: ModelFacts
    ranks: tuple[Rank, ...]
    layout: Layout
    capacity: Capacity
    verdict: Verdict
    reasons: tuple[Message, ...]
    assumptions: tuple[Message, ...]
    cards: tuple[Card, ...]

    @property
    def tightest(self) -> Rank:
        return min(self.ranks, key=lambda r: (r.kv_cache.value, r.headroom.value))

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes per token of context over all layers, beyond every window, on one tensor rank of all stages."""
        return sum(c.token_bytes for c in self.layout.caches if c is not None and c.kind == "full")


def budget(settings: Settings, model: ModelFacts, cards: Sequence[Card]) -> Budget:
    """The budget of `model` under `settings` on `cards`. UsageError when there are fewer cards than ranks."""
    if len(cards) < settings.world_size:
        raise UsageError(
            msg("the command needs {need} GPUs; {have} are given", need=settings.world_size, have=len(cards)),
            hint=msg("Lower --tensor-parallel-size or --pipeline-parallel-size, or name more GPUs."),
        )
    cut = stages(model.num_layers, settings.pipeline_parallel_size, older=settings.version < (0, 8))
    ranks = tuple(_ranks(settings, model, cut, cards))
    plan = layout(settings, model)
    per_stage = [min(r.kv_cache.value for r in ranks if r.stage is s) * GIB for s in cut]
    held = capacity(settings, plan, cut, per_stage, max(settings.max_model_len, model.max_positions))
    verdict, reasons = judge(settings, model, ranks, held)
    return Budget(
        settings=settings,
        model=model,
        ranks=ranks,
        layout=plan,
        capacity=held,
        verdict=verdict,
        reasons=reasons,
        assumptions=(*settings.assumed, *(msg("assumed of the model: {what}", what=a) for a in model.assumed)),
        cards=tuple(cards),
    )


def _ranks(settings: Settings, model: ModelFacts, cut: Sequence[Stage], cards: Sequence[Card]) -> list[Rank]:
    """One Rank per card; ranks of a stage on equal cards share their numbers."""
    made: dict[tuple[int, Card], Rank] = {}
    found: list[Rank] = []
    for number in range(settings.world_size):
        at = number // settings.tensor_parallel_size
        card = cards[number]
        if (at, card) not in made:
            made[at, card] = _rank(settings, model, number, cut[at], card)
        same = made[at, card]
        found.append(same if same.rank == number else _renumbered(same, number))
    return found


def _renumbered(rank: Rank, number: int) -> Rank:
    return Rank(
        number, rank.stage, rank.card, rank.weights, rank.context, rank.activation, rank.graphs, rank.deducted,
        rank.requested, rank.kv_cache, rank.headroom,
    )  # fmt: skip


def _rank(settings: Settings, model: ModelFacts, number: int, stage: Stage, card: Card) -> Rank:
    held = weights(settings, model, stage)
    outside = context(settings, card)
    peak = activation(settings, model, stage)
    graphs = graph_memory(settings, model, stage)
    deducted = deducted_graphs(settings, model, stage)
    requested = Derived(
        card.total_gib * settings.gpu_memory_utilization,
        "GiB",
        "total x gpu_memory_utilization",
        "table",
        {"total_gib": card.total_gib, "gpu_memory_utilization": settings.gpu_memory_utilization},
    )
    kv_cache = _kv_cache(settings, requested, held, outside, peak, deducted)
    spare = card.total_gib - outside.before.value - outside.counted.value - held.value - peak.value - kv_cache.value
    headroom = Derived(
        spare - (graphs.value if settings.graphs else 0.0),
        "GiB",
        "total - context - weights - activation peak - KV cache - CUDA graphs",
        "computed",
    )
    return Rank(number, stage, card, held, outside, peak, graphs, deducted, requested, kv_cache, headroom)


def _kv_cache(
    settings: Settings,
    requested: Derived[float],
    held: Derived[float],
    outside: Context,
    peak: Derived[float],
    deducted: Derived[float],
) -> Derived[float]:
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
