"""Every command rule's own examples, through the production entry point: bad fires once at its place, good never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.engine.command import LaunchCommand
from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import GpuSet, cpu, parse_gpus
from trimtab.facts.model import ModelFacts, read_model
from trimtab.rules import registry
from trimtab.rules.lint import LintFacts, lint
from trimtab.rules.rule import Example, Grade
from trimtab.rules.runner import Report, Selection, fix

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
EXAMPLES = [
    (code, kind, number)
    for code in registry.RULES
    if code.startswith("CMD")
    for kind in ("bad", "good")
    for number, _ in enumerate(getattr(registry.rule(code), kind))
]


def judge(example: Example, code: str, text: str) -> Report:
    """The example's text with the facts beside it; only the rule's own findings."""

    def model_of(command: LaunchCommand) -> ModelFacts | None:
        if example.model is None:
            return None
        if "/" in example.model:
            return find_model(example.model).facts()
        return read_model(json.loads((MODELS / f"{example.model}.json").read_text()))

    facts = LintFacts(vllm=example.vllm, gpus=gpus_of(example.gpu), host_gib=example.host_gib, model_of=model_of)
    return lint(text, facts=facts, selection=Selection(select=(code,))).report


def gpus_of(spec: str | None) -> GpuSet | None:
    if spec == "cpu":
        return cpu(32.0)
    return parse_gpus(spec) if spec else None


@pytest.mark.parametrize(("code", "kind", "number"), EXAMPLES)
def test_example(code: str, kind: str, number: int) -> None:
    example: Example = getattr(registry.rule(code), kind)[number]
    report = judge(example, code, example.text)
    assert not report.not_judged, "an example gives all the facts its rule needs"
    if kind == "good":
        assert not report.findings
        return
    assert [f.rule.code for f in report.findings] == [code]
    finding = report.findings[0]
    assert finding.span is not None
    marked = example.text.encode()[finding.span.start : finding.span.end].decode()
    assert marked == example.at
    assert finding.message.zh, "a rule's messages carry their Chinese"
    assert finding.message.text("zh") != finding.message.text("en")
    fixable = finding.fix is not None and finding.fix.grade is not Grade.DISPLAY
    assert (example.fixed is not None) == fixable, "a fix is shown in the example"
    if fixable:
        after, _ = fix(example.text, lambda text: judge(example, code, text), unsafe=True)
        assert after == example.fixed
        again, mended = fix(after, lambda text: judge(example, code, text), unsafe=True)
        assert again == after
        assert not mended
