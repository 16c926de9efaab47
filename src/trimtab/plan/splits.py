"""Which ways of spreading a model over cards are legal, and in which order they are tried."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.engine.flags import FlagTable
from trimtab.facts.model import ModelFacts
from trimtab.plan.cuts import Ways, first_cut, heads_allow
from trimtab.plan.memory.versions import release
from trimtab.plan.parallel import refusals
from trimtab.plan.wish import Task, Wish

CARDS_PER_MACHINE = 8
"""What shares NVLink or a board: HGX and DGX hold eight. Tensor ranks stay within it, pipelines cross it."""
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


class Split(msgspec.Struct, frozen=True):
    """Ranks by kind; `experts`: experts are spread by count over tensor and data ranks (--enable-expert-parallel)."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: bool = False

    @property
    def cards(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def crosses_machines(self) -> bool:
        """Whether ranks that talk at every layer are in several machines."""
        return self.tensor * self.data > CARDS_PER_MACHINE

    @property
    def flags(self) -> dict[str, object]:
        """The flags that differ from vLLM's defaults."""
        found: dict[str, object] = {}
        for name, size in (("tensor", self.tensor), ("pipeline", self.pipeline), ("data", self.data)):
            if size > 1:
                found[f"{name}_parallel_size"] = size
        if self.experts:
            found["enable_expert_parallel"] = True
        return found

    @property
    def text(self) -> str:
        """As people write it: "TP 4 x PP 2"."""
        sizes = (("TP", self.tensor), ("PP", self.pipeline), ("DP", self.data))
        return " x ".join(f"{k} {n}" for k, n in sizes if n > 1 or k == "TP") + (" + EP" if self.experts else "")


def splits(task: Task, wish: Wish | None = None) -> list[Split]:
    """What vLLM takes for this model on these cards, in the order of trial.

    Fewest cards first, pipelines after all others, tensor and data ranks over several machines last. Data ranks come in
    where tensor ranks would hold the same cache again (MLA), where experts can be spread, and for throughput.
    """
    prefer = wish.prefer if wish else "balanced"
    found = [s for s in _all(task, prefer) if _asked(task, s) and _legal(task, s)]
    data_first = prefer == "throughput" and (task.has_latent_cache or not task.has_experts)
    return sorted(
        found,
        key=lambda s: (
            s.crosses_machines,
            s.pipeline > 1,
            s.cards,
            (s.data > 1) != data_first,
            s.pipeline,
            s.data,
            s.experts,
        ),
    )


def _all(task: Task, prefer: str) -> Iterator[Split]:
    most = len(task.cards)
    table = FlagTable.for_version(task.version)
    has_data = not task.on_cpu and table.find("--data-parallel-size") is not None
    has_experts = has_data and task.has_experts and table.find("--enable-expert-parallel") is not None
    spreads = has_data and (task.has_latent_cache or has_experts or prefer == "throughput")
    asked_data, asked_experts = task.pinned.get("data_parallel_size"), task.pinned.get("enable_expert_parallel")
    for tensor in range(1, most + 1):
        for pipeline in range(1, most // tensor + 1):
            room = most // (tensor * pipeline)
            if most % (tensor * pipeline) and "pipeline_parallel_size" not in task.pinned and pipeline > 1:
                continue  # it would leave cards idle that a pipeline needs
            datas = range(1, room + 1) if (spreads and pipeline == 1) or asked_data else (1,)
            for data in datas:
                yield from (
                    Split(tensor, pipeline, data, experts)
                    for experts in (False, True)
                    if not experts or asked_experts or (has_experts and tensor * data > 1 and pipeline == 1)
                )


def _asked(task: Task, split: Split) -> bool:
    """Whether it is what the user pinned."""
    sizes = (split.tensor, split.pipeline, split.data)
    if not all(task.pinned.get(name, size) == size for name, size in zip(SIZES, sizes, strict=True)):
        return False
    wanted = task.pinned.get("enable_expert_parallel", split.experts)
    return wanted == split.experts if task.has_experts else not split.experts  # on a dense model it says nothing


def _legal(task: Task, split: Split) -> bool:
    model = task.model
    if refusals(model, split.tensor, split.pipeline):
        return False
    if split.data > 1 and task.has_experts and not split.experts and "enable_expert_parallel" not in task.pinned:
        return False  # experts cut by inner size over all data ranks: legal, and never better than by count
    if split.experts and "enable_expert_parallel" not in task.pinned and not _experts_spread(task, split):
        return False
    if "tensor_parallel_size" not in task.pinned and not _even(model, split):
        return False
    found = release(task.version)
    ways = Ways(split.tensor, split.data, split.experts, (found.major, found.minor))
    return "tensor_parallel_size" in task.pinned or first_cut(model, ways) is None


def _experts_spread(task: Task, split: Split) -> bool:
    moe = next((x.moe for x in task.model.layers if x.moe), None)
    return moe is not None and moe.experts % (split.tensor * split.data) == 0


def _even(model: ModelFacts, split: Split) -> bool:
    """Powers of two, over which KV heads spread evenly: other sizes start on some models and die on their variants."""
    powers = all(size & (size - 1) == 0 for size in (split.tensor, split.data))
    return powers and heads_allow(model, split.tensor)
