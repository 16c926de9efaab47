"""What is set once for several commands is told of once."""

from __future__ import annotations

from trimtab.rules.lint import LintFacts, lint


def test_an_exported_variable_is_told_of_once() -> None:
    text = "export VLLM_USE_V1=1\nvllm serve a\nvllm serve b --swap-space 1\nvllm serve c --swap-space 1\n"
    codes = [f.rule.code for f in lint(text, facts=LintFacts(vllm="0.26")).report.findings]
    assert codes == ["CMD701", "CMD002", "CMD002"]
