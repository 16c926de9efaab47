"""What the linter says of a plan's own command."""

from __future__ import annotations

from trimtab.engine.flags import FlagTable
from trimtab.facts.gpu import GpuSet
from trimtab.messages import Message, msg
from trimtab.plan.planner import Plan
from trimtab.rules import registry
from trimtab.rules.lint import LintFacts, context_of
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, run


def checked(made: Plan, gpus: GpuSet, table: FlagTable | None = None) -> Report:
    """The command rules over the plan's command, with its model and cards known."""
    version = str(made.budget.settings.version)
    facts = LintFacts(version, gpus, lambda _: made.budget.model, lambda _: table)
    return run(registry.rules(Subject.COMMAND), context_of(made.command, facts), None)


def stops(found: Report) -> tuple[Message, ...]:
    """Findings by which vLLM would refuse the command: the cards cannot run the model whatever the flags."""
    return tuple(
        msg("{code} {text}", code=one.rule.code, text=one.message)
        for one in found.findings
        if one.severity is Severity.ERROR
    )


def verdict_of(report: Report) -> tuple[Message, ...]:
    """One line per finding, or one that there is none."""
    found = report.findings
    if not found:
        return (msg("trimtab lint finds nothing in this command"),)
    return tuple(msg("{code} {text}", code=one.rule.code, text=one.message) for one in found)
