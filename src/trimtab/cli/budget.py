"""`trimtab budget -- <launch command>`: what the launch needs of each card, and whether it starts."""

from __future__ import annotations

from pathlib import Path

import typer
from msgspec.structs import replace

from trimtab.cli import options
from trimtab.cli.drafts import with_draft_of
from trimtab.cli.format.budget import as_json, as_text
from trimtab.cli.gpus import gpus_named
from trimtab.cli.installed import installed_table
from trimtab.cli.models import find_model
from trimtab.cli.notes import Notes
from trimtab.cli.plan_file import made_for
from trimtab.cli.settings import lang
from trimtab.cli.subject import PlanSubject, command_of, resolve_subject
from trimtab.engine.command import LaunchCommand
from trimtab.errors import UsageError
from trimtab.messages import Message, msg
from trimtab.plan.memory import Budget, budget, cards_of, given_of, release, resolve
from trimtab.plan.memory.bounds import context_ranks_refused, out_of_bounds
from trimtab.plan.memory.versions import NEWEST
from trimtab.plan.parallel import refusals


def run(
    ctx: typer.Context,
    subject: options.Subject = None,
    gpu: options.Gpu = None,
    vllm: options.VllmVersion = None,
    engine_python: options.EnginePython = None,
    model_config: options.ModelConfig = None,
    json: options.AsJson = False,
    explain: options.Explain = False,
) -> int:
    """Predict the memory of a launch: weights, KV cache, what is left, and the verdict."""
    read = resolve_subject(subject, ctx.obj)
    if isinstance(read, PlanSubject):
        version, cards = made_for(read.data)
        vllm = vllm or (version if engine_python is None else None)
        gpu = gpu or cards
    command = command_of(read)
    report = budget_of(command, gpu=gpu, vllm=vllm, model_config=model_config, engine_python=engine_python)
    print(as_json(report, lang()) if json else as_text(report, lang(), explain=explain))
    return 0 if report.verdict == "fits" else 1


def budget_of(
    command: LaunchCommand,
    *,
    gpu: str | None,
    vllm: str | None,
    model_config: Path | None,
    engine_python: Path | None = None,
) -> Budget:
    """The budget of one launch command, with what had to be assumed because nothing said it."""
    assumed: list[Message] = []
    version = vllm or (command.container.version if command.container else None)
    table = None if command.container and version is None else installed_table(version, engine_python)
    version = version or (table.version if table else None)
    if version is None:
        version = str(NEWEST)
        assumed.append(msg("vLLM {version}: the newest that Trimtab knows, since nothing names one", version=version))
    named = command.get("model") or (command.model.text if command.model else None)
    model = find_model(named, model_config, Notes(lang()), described=True).facts
    model = with_draft_of(command, model, Notes(lang()))
    gpus = gpus_named(gpu)
    assumed += gpus.notes
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
    if len(cards) == 1 and need > 1 and not (gpu or "").strip()[:1].isdigit():
        cards = cards * need
        assumed.append(msg("{need} of that card, as many as the command asks for", need=need))
    report = budget(settings, model, cards)
    return report.with_assumptions(assumed)
