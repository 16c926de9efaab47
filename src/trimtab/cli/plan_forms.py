"""`trimtab plan -o FORM`: the plan as a file that people deploy, or as data with the linter's findings on it."""

from __future__ import annotations

import sys
from pathlib import Path

from trimtab.cli.format import plan as plan_format
from trimtab.cli.format.budget import as_value
from trimtab.cli.format.json import dump, findings_value
from trimtab.cli.settings import lang
from trimtab.messages import msg
from trimtab.plan.planner import Plan
from trimtab.plan.render.forms import render, require_form
from trimtab.plan.render.launch import CARDS_PER_MACHINE, launch_of
from trimtab.rules.runner import Report

DATA = ("json", "plan")
"""Forms in schema `trimtab.plan/1`; `up`, `lint` and `budget` read such a file."""


def require(form: str) -> None:
    """UsageError, naming the nearest, when there is no such form."""
    require_form(form, DATA)


def written(form: str, made: Plan, report: Report, nodes: int | None, python: Path | None = None) -> str:
    """The text for stdout. A plan that does not fit is data only: as a form to deploy it is empty, and stderr says why.

    `report`: the linter's on the plan's command. `python`: that of the vLLM to start. UsageError where the form cannot
    hold the launch.
    """
    if form in DATA:
        budget = as_value(made.budget, lang())
        findings = findings_value(report, lang(), str(made.budget.settings.version))["findings"]
        return dump(plan_format.value(made, lang(), budget, findings))
    if not made.fits:
        print(plan_format.text(made, lang()), end="", file=sys.stderr)
        return ""
    launch = launch_of(made, nodes, program=None if python is None else str(python.absolute().with_name("vllm")))
    if nodes is None and launch.nodes > 1:
        note = msg(
            "{cards} cards are taken as {nodes} machines of {each}; --nodes says otherwise",
            cards=launch.cards,
            nodes=launch.nodes,
            each=CARDS_PER_MACHINE,
        )
        print(note.text(lang()), file=sys.stderr)
    return render(form, launch)
