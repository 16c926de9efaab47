"""How vLLM cuts a model over ranks: layers per pipeline stage, heads per tensor rank, and which cuts it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.facts.layers import LayerFacts
from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.cuts import heads_allow

IN_MACHINES = (1, 2, 4, 8, 16)
"""Numbers of cards that machines come with, and two machines of eight."""


class Stage(msgspec.Struct, frozen=True):
    """One pipeline stage: decoder layers `start` up to `end`; the first also embeds, the last also makes logits."""

    start: int
    end: int
    first: bool
    last: bool

    @property
    def layers(self) -> int:
        return self.end - self.start


def stages(layers: int, pipeline: int, partition: Sequence[int] = (), *, older: bool = False) -> tuple[Stage, ...]:
    """Cut `layers` into `pipeline` stages as vLLM does (distributed/utils.py `get_pp_indices`).

    What does not divide goes one each to the stages before the last, last-but-one first; before 0.8 (`older`) all of
    it to the last. `partition` is VLLM_PP_LAYER_PARTITION.
    """
    sizes = list(partition) if partition else _even(layers, pipeline, older)
    cuts = [0]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    last = len(sizes) - 1
    return tuple(Stage(cuts[i], cuts[i + 1], i == 0, i == last) for i in range(len(sizes)))


def _even(layers: int, pipeline: int, older: bool) -> list[int]:
    sizes = [layers // pipeline] * pipeline
    if older:
        sizes[-1] += layers % pipeline
        return sizes
    for back in range(2, layers % pipeline + 2):
        sizes[-back] += 1
    return sizes


def kv_heads_per_rank(kv_heads: int, tensor: int) -> int:
    """KV heads on one rank: fewer heads than ranks are replicated (config/model.py `get_num_kv_heads`)."""
    return max(1, kv_heads // tensor)


def refusals(model: ModelFacts, tensor: int, pipeline: int) -> tuple[Message, ...]:
    """Why vLLM would refuse this cut, each with the sizes that it takes; empty when it would not."""
    found: list[Message] = []
    if model.heads and model.heads % tensor:
        fit = ", ".join(str(n) for n in IN_MACHINES if heads_allow(model, n))
        found.append(
            msg(
                "{heads} attention heads do not divide by --tensor-parallel-size {tensor}; of the sizes of machines "
                "these do: {fit}",
                heads=model.heads,
                tensor=tensor,
                fit=fit,
            )
        )
    elif not heads_allow(model, tensor):
        fit = ", ".join(str(n) for n in IN_MACHINES if heads_allow(model, n))
        found.append(
            msg(
                "{kv} key-value heads cannot be spread evenly over --tensor-parallel-size {tensor}; of the sizes of "
                "machines these can: {fit}",
                kv=model.kv_heads,
                tensor=tensor,
                fit=fit,
            )
        )
    if model.num_layers and pipeline > model.num_layers:
        found.append(
            msg("{layers} layers cannot be cut into {pipeline} stages", layers=model.num_layers, pipeline=pipeline)
        )
    return tuple(found)


def stage_layers(model: ModelFacts, stage: Stage) -> tuple[LayerFacts, ...]:
    return model.layers[stage.start : stage.end]
