"""Every client rule's own examples: texts of client errors, or evidence of a probe; bad fires once, good never."""

from __future__ import annotations

import pytest

from trimtab.engine.logs import read_log
from trimtab.rules import registry
from trimtab.rules.causes import Cause
from trimtab.rules.clients import judge_endpoint, judge_text, recorded
from trimtab.rules.doctor import diagnose
from trimtab.rules.rule import Example, Severity, Subject
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


START = "INFO 11-30 03:43:16 [api_server.py:1] vLLM API server version 0.26\nINFO:     Application startup complete.\n"
REFUSED = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized\n'


def test_refused_requests_are_a_warning_in_the_log_of_a_server_that_is_well() -> None:
    found = diagnose(read_log([(START + REFUSED).encode()]))
    assert found.cause is None
    assert found.report.findings[0].rule.cause is Cause.KEY_MISSING
    assert found.report.findings[0].severity is Severity.WARNING


def test_a_client_s_text_is_diagnosed_as_one() -> None:
    found = diagnose(read_log([b"httpx.ConnectError: [Errno 111] Connection refused\n"]))
    assert found.cause is not None
    assert found.cause.rule.cause is Cause.CONNECTION_REFUSED


def test_a_failed_start_is_not_told_of_as_a_client_s() -> None:
    start = START.replace("INFO:     Application startup complete.\n", "")
    text = start + "ERROR 11-30 03:43:20 [core.py:1] torch.distributed: Connection refused\n"
    found = diagnose(read_log([text.encode()]))
    assert not [f for f in found.report.findings if f.rule.code.startswith("CLT")]
