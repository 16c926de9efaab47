"""What the linter says of a plan's own command."""

from __future__ import annotations

from trimtab.engine.flags import FlagTable
from trimtab.facts.gpu import GpuSet
from trimtab.messages import Message, msg
from trimtab.plan.planner import Plan
from trimtab.rules import registry
from trimtab.rules.lint import LintFacts, context_of
from trimtab.rules.rule import Subject
from trimtab.rules.runner import Report, run


def checked(made: Plan, gpus: GpuSet, table: FlagTable | None = None) -> Report:
    """The command rules over the plan's command, with its model and cards known."""
    version = str(made.budget.settings.version)
    facts = LintFacts(version, gpus, lambda _: made.budget.model, lambda _: table)
    return run(registry.rules(Subject.COMMAND), context_of(made.command, facts), None)


def verdict_of(made: Plan, gpus: GpuSet, table: FlagTable | None) -> tuple[Message, ...]:
    """One line per finding, or one that there is none."""
    found = checked(made, gpus, table).findings
    if not found:
        return (msg("trimtab lint finds nothing in this command"),)
    return tuple(msg("{code} {text}", code=one.rule.code, text=one.message) for one in found)
