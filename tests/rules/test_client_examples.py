"""Every client rule's own examples: texts of client errors, or evidence of a probe; bad fires once, good never."""

from __future__ import annotations

import pytest

from trimtab.rules import registry
from trimtab.rules.clients import judge_endpoint, judge_text, recorded
from trimtab.rules.rule import Example, Subject
from trimtab.rules.runner import Report, Selection

EXAMPLES = [
    (rule.code, kind, number)
    for rule in registry.rules(Subject.CLIENT)
    for kind in ("bad", "good")
    for number, _ in enumerate(getattr(rule, kind))
]


def judge(example: Example, code: str) -> Report:
    selection = Selection(select=(code,))
    if example.text.startswith('{"url"'):
        return judge_endpoint(recorded(example.text), selection)
    return judge_text(example.text.splitlines(), selection=selection)


@pytest.mark.parametrize(("code", "kind", "number"), EXAMPLES)
def test_example(code: str, kind: str, number: int) -> None:
    report = judge(getattr(registry.rule(code), kind)[number], code)
    if kind == "good":
        assert not report.findings
        return
    assert [f.rule.code for f in report.findings] == [code]
    finding = report.findings[0]
    assert finding.message.zh
    assert finding.message.text("zh") != finding.message.text("en")
    assert finding.evidence
    assert finding.confidence


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    lines = [
        "INFO 11-30 03:43:16 [api_server.py:1] Starting vLLM API server on http://0.0.0.0:8000",
        "INFO:     Application startup complete.",
        'INFO:     127.0.0.1:40012 - "GET /health HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "INFO 11-30 03:44:16 [loggers.py:1] Engine 000: Avg prompt throughput: 12.0 tokens/s",
    ]
    assert judge_text(lines).findings == ()


def test_odd_texts_are_read_in_linear_time() -> None:
    assert judge_text(["\x00\udcff", "", "error " * 100_000, '"' * 50_000, "{" * 50_000]) is not None
    assert len(judge_text([f"error {n} 404 Not Found" for n in range(100_000)]).findings) < 20
