"""Every log rule's own examples, through the production entry point: bad fires once at its line, good never."""

from __future__ import annotations

import pytest

from tests.rules.test_examples import gpus_of
from trimtab.engine.command import LaunchCommand, apply_edits
from trimtab.engine.logs import read_log
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.model import ModelFacts
from trimtab.rules import registry
from trimtab.rules.doctor import Diagnosis, DoctorFacts, diagnose
from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import Example, Rule, Subject
from trimtab.rules.runner import Reported

RULES = registry.rules(Subject.LOG)
EXAMPLES = [
    (rule, kind, number) for rule in RULES for kind in ("bad", "good") for number, _ in enumerate(getattr(rule, kind))
]


def judge(example: Example) -> Diagnosis:
    """All log rules on the example's text, with the facts beside it."""

    def model_of(command: LaunchCommand) -> ModelFacts | None:
        return find_model(example.model).facts() if example.model else None

    facts = DoctorFacts(vllm=example.vllm, gpus=gpus_of(example.gpu), host_gib=example.host_gib, model_of=model_of)
    return diagnose(read_log([example.text.encode()], example.exit_status), facts)


def of(rule: Rule, diagnosis: Diagnosis) -> list[Reported]:
    return [f for f in diagnosis.report.findings if f.rule.code == rule.code]


@pytest.mark.parametrize(("rule", "kind", "number"), EXAMPLES, ids=lambda v: v.code if isinstance(v, Rule) else str(v))
def test_example(rule: Rule, kind: str, number: int) -> None:
    example: Example = getattr(rule, kind)[number]
    diagnosis = judge(example)
    found = of(rule, diagnosis)
    if kind == "good":
        assert not found
        return
    assert len(found) == 1
    first = diagnosis.report.findings[0]
    assert first.rule.code == rule.code, f"{first.rule.code} {first.rule.name} comes first"
    finding = found[0]
    assert finding.confidence is not None
    if example.at is not None:
        assert finding.evidence[0].startswith(example.at)
        assert finding.evidence[0].startswith(f"line {finding.line}: ")
    assert finding.message.zh, "a rule's messages carry their Chinese"
    assert finding.message.text("zh") != finding.message.text("en")
    if finding.fix is not None and diagnosis.command is not None:
        after = apply_edits(diagnosis.command.source.text, finding.fix.edits)
        assert after == example.fixed, "a fix is shown in the example"
    else:
        assert example.fixed is None


def test_a_rule_without_a_log_says_nothing() -> None:
    context = LogContext(read_log([]))
    assert not [rule.code for rule in RULES if list(rule.check(context))]
