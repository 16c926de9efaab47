"""`trimtab plan MODEL`: the launch command that holds a wish, the memory behind it and a reason for every flag."""

from __future__ import annotations

import sys

import typer

from trimtab.cli import options
from trimtab.cli.format import plan as plan_format
from trimtab.cli.gpus import cpu_set, gpus_named
from trimtab.cli.installed import installed_table, unknown_to
from trimtab.cli.models import find_model, require_known
from trimtab.cli.notes import Notes
from trimtab.cli.settings import lang
from trimtab.facts.gpu import GpuSet
from trimtab.facts.probe.gpus import read_gpus
from trimtab.messages import msg
from trimtab.plan.memory.card import cards_of
from trimtab.plan.memory.versions import NEWEST
from trimtab.plan.pinned import flags_of, pinned_of
from trimtab.plan.planner import Task, Wish, plan


def run(
    ctx: typer.Context,
    model: options.ModelRef,
    gpu: options.Gpu = None,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    vllm: options.VllmVersion = None,
    engine_python: options.EnginePython = None,
    model_config: options.ModelConfig = None,
    output: options.PlanForm = None,
    nodes: options.Nodes = None,
    json: options.AsJson = False,
) -> int:
    """Plan a launch; flags after `--` are taken as they are. Exit code 1 when nothing fits."""
    form = "json" if json else output
    if form is not None:
        from trimtab.cli.plan_forms import require, written

        require(form)
    found = require_known(find_model(model, model_config, Notes(lang())))
    gpus = _gpus(gpu)
    for note in gpus.notes:
        print(note.text(lang()), file=sys.stderr)
    table = installed_table(vllm, engine_python)
    task = Task(
        model_path=found.ref,
        served_name=found.served_name,
        model=found.facts,
        cards=cards_of(gpus),
        version=vllm or (table.version if table else str(NEWEST)),
        pinned=pinned_of(flags_of(ctx.obj or ())),
        remote_code=found.remote_code,
    )
    made = plan(task, Wish(context, concurrency))
    for flag in unknown_to(table, made.command) if table else ():
        print(msg("the installed vLLM does not know {flag}", flag=flag).text(lang()), file=sys.stderr)
    if form is None:
        print(plan_format.text(made, lang()), end="")
    else:
        print(written(form, made, nodes, gpus, table, engine_python), end="")
    return 0 if made.fits else 1


def _gpus(spec: str | None) -> GpuSet:
    """The cards of `--gpu`; without it this host's, and the CPU engine where it has none."""
    if spec is None and not read_gpus().cards:
        return cpu_set()
    return gpus_named(spec)
