"""What several command rules ask of the model and the parallel sizes; no rule itself."""

from __future__ import annotations

from trimtab.facts.model import ModelFacts
from trimtab.plan import cuts
from trimtab.plan.cuts import Cut, heads_allow
from trimtab.rules.command.context import CommandContext

__all__ = ["first_cut", "heads_allow"]


def first_cut(context: CommandContext, model: ModelFacts, tp: int) -> Cut | None:
    """The first weight that `tp` ranks would cut inside a quantisation group or block."""
    if model.quantisation is None:
        return None
    newer = next((v for v in (cuts.REFINED_SINCE, cuts.MERGED_MAY_DIFFER_SINCE) if context.at_least(_text(v))), (0, 0))
    experts_by_count = bool(context.command.has("enable-expert-parallel"))
    data = context.integer("data-parallel-size", 1) or 1
    return cuts.first_cut(model, cuts.Ways(tp, data, experts_by_count, newer))


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
