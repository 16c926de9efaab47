"""`trimtab budget -- <launch command>`: what the launch needs of each card, and whether it starts."""

from __future__ import annotations

from pathlib import Path

import typer

from trimtab.cli import options
from trimtab.cli.drafts import with_draft_of
from trimtab.cli.format.budget import as_json, as_text
from trimtab.cli.gpus import gpus_named
from trimtab.cli.installed import installed_table
from trimtab.cli.models import find_model
from trimtab.cli.notes import Notes
from trimtab.cli.plan_file import made_for
from trimtab.cli.reckoning import reckoned
from trimtab.cli.settings import lang
from trimtab.cli.subject import PlanSubject, command_of, resolve_subject
from trimtab.engine.command import LaunchCommand
from trimtab.messages import Message, msg
from trimtab.plan.memory import Budget
from trimtab.plan.memory.versions import NEWEST


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
    return reckoned(command, model, gpus_named(gpu), version, table=table, spec=gpu).with_assumptions(assumed)
