"""A default that the card decides: told as a warning where no card is known, as an error or not at all where one is."""

from __future__ import annotations

import pytest

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.rules.lint import LintFacts, lint
from trimtab.rules.rule import Severity


@pytest.mark.parametrize(
    ("gpu", "severity"), [(None, Severity.WARNING), ("2xA100-80", Severity.ERROR), ("2xH100-80", None)]
)
def test_batched_tokens_by_default(gpu: str | None, severity: Severity | None) -> None:
    model = find_model("Qwen/Qwen3.5-122B-A10B-GPTQ-Int4").facts()  # its attention block is of 2,096 tokens
    facts = LintFacts(vllm="0.17.1", gpus=parse_gpus(gpu) if gpu else None, model_of=lambda command: model)
    report = lint("vllm serve m -tp 2 --enable-prefix-caching --max-model-len 131072\n", facts=facts).report
    assert next((f.severity for f in report.findings if f.rule.code == "CMD510"), None) is severity
