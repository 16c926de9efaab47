"""A launch command, its model and its cards to the budget: what every door that predicts memory shares."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.engine.command import LaunchCommand
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.facts.gpu import GpuSet
from trimtab.facts.model import ModelFacts
from trimtab.messages import Message, msg
from trimtab.plan.memory import Budget, budget, cards_of, given_of, release, resolve
from trimtab.plan.memory.bounds import context_ranks_refused, out_of_bounds
from trimtab.plan.parallel import refusals


def reckoned(
    command: LaunchCommand,
    model: ModelFacts,
    gpus: GpuSet,
    version: str,
    *,
    table: FlagTable | None = None,
    spec: str | None = None,
) -> Budget:
    """The budget of one launch under vLLM `version`, with what was assumed of the cards and the engine.

    `table`: an installed vLLM's own defaults. `spec`: the cards as the user wrote them; a bare name ("A10") stands for
    as many as the command asks for. UsageError for flags or cuts that vLLM refuses, or too few cards.
    """
    assumed: list[Message] = [*gpus.notes]
    if any(not gpu.vendor for _, gpu in gpus.members):
        assumed.append(msg("a card that is known by its memory alone is reckoned as an NVIDIA card of capability 8.0"))
    cards = cards_of(gpus)
    given = given_of(command)
    if table is not None and (own := {k: v for k, v in table.own_defaults.items() if k not in given.flags}):
        given = replace(given, flags={**own, **given.flags})
        assumed.append(msg("defaults of the installed vLLM: {names}", names=", ".join(sorted(own))))
    wrong = next(out_of_bounds(given), None)
    if wrong is not None:
        raise UsageError(wrong, hint=msg("Correct the flag in the launch command."))
    settings = resolve(given, release(version), model, cards)
    refused = refusals(model, settings.tensor_parallel_size, settings.pipeline_parallel_size)
    refused = refused or tuple(filter(None, (context_ranks_refused(settings, model),)))
    if refused:
        raise UsageError(refused[0], hint=msg("vLLM refuses this cut at start; choose another size."))
    need = settings.cards_needed
    if len(cards) == 1 and need > 1 and not (spec or "").strip()[:1].isdigit():
        cards = cards * need
        assumed.append(msg("{need} of that card, as many as the command asks for", need=need))
    return budget(settings, model, cards).with_assumptions(assumed)
