"""The budget of one launch: every rank's memory, what is left for the KV cache, and whether the server starts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from trimtab.errors import UsageError
from trimtab.facts.derived import Derived
from trimtab.facts.model import ModelFacts
from trimtab.facts.serving import as_served
from trimtab.messages import Message, msg
from trimtab.plan.capacity import Capacity, capacity
from trimtab.plan.memory.allocator import GIB
from trimtab.plan.memory.card import Card
from trimtab.plan.memory.draft import draft_assumptions, draft_layers
from trimtab.plan.memory.host import host_memory
from trimtab.plan.memory.kv import Layout, layout
from trimtab.plan.memory.rank import Rank, rank_all
from trimtab.plan.memory.settings import Settings
from trimtab.plan.memory.verdict import Verdict, judge
from trimtab.plan.parallel import stages


class Budget(msgspec.Struct, frozen=True):
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
    def known(self) -> bool:
        """Whether the numbers hold: the model's architecture is one that was read."""
        return bool(self.model.layers) and not self.model.missing

    @property
    def host_memory(self) -> Derived[float]:
        """GiB of host memory that the launch pins."""
        return host_memory(self.settings)

    def with_assumptions(self, more: Sequence[Message]) -> Budget:
        return replace(self, assumptions=(*more, *self.assumptions))

    @property
    def tightest(self) -> Rank:
        return min(self.ranks, key=lambda r: (r.kv_cache.value, r.headroom.value))

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes per token of context over all layers, beyond every window, on one tensor rank of all stages."""
        return sum(c.cache.token_bytes for c in self.layout.caches if c.cache.kind == "full")


def budget(settings: Settings, model: ModelFacts, cards: Sequence[Card]) -> Budget:
    """The budget of `model` under `settings` on `cards`.

    UsageError when there are fewer cards than ranks; ModelError for a --quantization that the checkpoint lacks.
    """
    if len(cards) < settings.cards_needed:
        raise UsageError(
            msg("the command needs {need} GPUs; {have} are given", need=settings.cards_needed, have=len(cards)),
            hint=msg("Lower --tensor-parallel-size or --pipeline-parallel-size, or name more GPUs."),
        )
    stored, model = model, _served(settings, model)
    partition, older = settings.pipeline_partition, settings.version < (0, 8)
    cut = stages(model.num_layers, settings.pipeline_parallel_size, partition, older=older)
    ranks = rank_all(settings, model, cut, cards, stored=stored)
    drafts = draft_layers(settings, model)
    plan = layout(settings, model, model.layers + drafts)
    per_stage = [min(r.kv_cache.value for r in ranks if r.stage is s) * GIB for s in cut]
    caching = (*cut[:-1], replace(cut[-1], end=cut[-1].end + len(drafts)))
    held = capacity(settings, plan, caching, per_stage, max(settings.max_model_len, model.max_positions))
    if settings.fit_length and not held.enough and held.longest_len > 0:
        settings = replace(settings, max_model_len=held.longest_len)
        held = capacity(settings, plan, caching, per_stage, held.longest_len)
    verdict, reasons = judge(settings, model, ranks, held)
    return Budget(
        settings=settings,
        model=model,
        ranks=ranks,
        layout=plan,
        capacity=held,
        verdict=verdict,
        reasons=reasons,
        assumptions=(
            *settings.assumed,
            *draft_assumptions(settings, model),
            *(msg("assumed of the model: {what}", what=a) for a in model.assumed),
        ),
        cards=tuple(cards),
    )


def _served(settings: Settings, model: ModelFacts) -> ModelFacts:
    """The model as it is after --dtype and --quantization have been heeded."""
    packed = settings.quantization is not None and model.quantisation is None
    if not packed and (settings.dtype != "float32" or model.element_bytes == 4):
        return model
    return as_served(model, dtype=settings.dtype, quantization=settings.quantization if packed else None)
