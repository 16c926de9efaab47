"""`trimtab plan MODEL`: the launch command that holds a wish, the memory behind it and a reason for every flag."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from msgspec.structs import replace

from trimtab.cli import options
from trimtab.cli.format import plan as plan_format
from trimtab.cli.gpus import cpu_set, gpus_named, of_this_host, with_taken
from trimtab.cli.installed import installed_table, unknown_to
from trimtab.cli.models import Model, find_model, require_known
from trimtab.cli.notes import Notes
from trimtab.cli.settings import lang
from trimtab.cli.task import task_of
from trimtab.engine.flags import FlagTable
from trimtab.errors import UsageError
from trimtab.facts.catalogue.lookup import nearest_ids
from trimtab.facts.gpu import GpuSet
from trimtab.facts.probe.gpus import read_gpus
from trimtab.messages import Message, msg
from trimtab.plan.memory.card import Card, cards_of
from trimtab.plan.memory.versions import NEWEST, release
from trimtab.plan.pinned import flags_of, words_of
from trimtab.plan.planner import Plan, Task, Wish, plan, plan_if_fits
from trimtab.plan.wish import read_preference, require_positive


def run(
    ctx: typer.Context,
    model: options.ModelRef,
    gpu: options.Gpu = None,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    input_tokens: options.InputTokens = None,
    output_tokens: options.OutputTokens = None,
    prefer: options.Preference = "balanced",
    set_flags: options.SetFlags = None,
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
        from trimtab.cli.plan_forms import require

        require(form)
    if nodes is not None:
        require_positive("--nodes", nodes)
    wish = Wish(context, concurrency, input_tokens, output_tokens, read_preference(prefer))
    found = require_known(find_model(model, model_config, Notes(lang())))
    if vllm is not None and vllm.strip().lower() == "auto":
        vllm = None
    table = installed_table(vllm, engine_python)
    version = vllm or (table.version if table else str(NEWEST))
    chosen = vllm is None and table is None
    pinned = flags_of([*words_of(set_flags or (), FlagTable.for_version(version)), *(ctx.obj or ())])
    if gpu is not None and gpu.strip().lower() == "any":
        return _any(task_of(found, (), version, pinned, any_vllm=chosen), wish, form)
    gpus, cards = _cards(gpu)
    for note in (*_doubts(found, version), *gpus.notes):
        print(note.text(lang()), file=sys.stderr)
    made = plan(task_of(found, cards, version, pinned, any_vllm=chosen), wish)
    return _shown(made, form, nodes, gpus, table, engine_python)


def _doubts(found: Model, version: str) -> Iterator[Message]:
    """What was taken for something near: a name that the catalogue lacks, a vLLM that is newer than all known."""
    body = next((one for one in found.facts.assumed if one.startswith("the body of")), None)
    if body is not None:
        yield msg(
            "{ref} is not in the catalogue; reckoned with {body}; the nearest name there is {near}",
            ref=found.ref,
            body=body,
            near=", ".join(nearest_ids(found.ref, 1)),
        )
    if release(version) > NEWEST:
        yield msg("vLLM {version} is newer than the newest known, {newest}, and taken to be as that", version=version,
                  newest=str(NEWEST))  # fmt: skip


def _shown(
    made: Plan, form: str | None, nodes: int | None, gpus: GpuSet, table: FlagTable | None, python: Path | None
) -> int:
    for flag in unknown_to(table, made.command) if table else ():
        print(msg("the installed vLLM does not know {flag}", flag=flag).text(lang()), file=sys.stderr)
    from trimtab.cli.plan_check import checked, stops, verdict_of

    report = checked(made, gpus, table)
    for one in stops(report) if made.fits else ():
        print(one.text(lang()), file=sys.stderr)
        made = replace(made, refusal=made.refusal or one)
    if form is None:
        print(plan_format.text(made, lang(), verdict_of(report)), end="")
    else:
        from trimtab.cli.plan_forms import written

        print(written(form, made, report, nodes, python), end="")
    return 0 if made.fits else 1


def _cards(spec: str | None) -> tuple[GpuSet, tuple[Card, ...]]:
    """The cards of `--gpu`; without it this host's, less what other processes hold, or the CPU where it has none."""
    if spec is not None and spec.strip().lower() != "auto":
        gpus = gpus_named(spec)
        return gpus, cards_of(gpus)
    here = read_gpus()
    if spec is None and not here.cards:
        gpus = cpu_set()
        return gpus, cards_of(gpus)
    gpus = of_this_host(here)
    return gpus, with_taken(cards_of(gpus), here.cards)


def _any(task: Task, wish: Wish, form: str | None) -> int:
    """Every set of cards that serves the wish, the smallest first."""
    from trimtab.cli.format import gpu_sets
    from trimtab.plan.kinds import kinds
    from trimtab.plan.sets import rank_sets

    if form not in (None, "json"):
        raise UsageError(
            msg("--gpu any compares cards; it has no form {form}", form=repr(form)),
            hint=msg("Choose a set from its list first: --gpu 2xH100."),
        )
    found = rank_sets(task, wish, kinds(), plan_if_fits)
    print(gpu_sets.value(found, lang()) if form else gpu_sets.text(found, lang()), end="")
    return 0 if found else 1
