"""Every host rule's own examples, which are recorded probes: bad fires once, good never."""

from __future__ import annotations

import msgspec
import pytest

from trimtab.facts.host import HostRecord
from trimtab.rules import registry
from trimtab.rules.preflight import preflight, recorded, written
from trimtab.rules.rule import Example, Subject
from trimtab.rules.runner import Selection

EXAMPLES = [
    (rule.code, kind, number)
    for rule in registry.rules(Subject.HOST)
    for kind in ("bad", "good")
    for number, _ in enumerate(getattr(rule, kind))
]


@pytest.mark.parametrize(("code", "kind", "number"), EXAMPLES)
def test_example(code: str, kind: str, number: int) -> None:
    example: Example = getattr(registry.rule(code), kind)[number]
    record = recorded(example.text)
    _refuse_unknown_fields(msgspec.json.decode(example.text), msgspec.to_builtins(record))
    report = preflight(record, Selection(select=(code,)))
    assert not report.not_judged
    if kind == "good":
        assert not report.findings
        return
    assert [f.rule.code for f in report.findings] == [code]
    message = report.findings[0].message
    assert message.zh
    assert message.text("zh") != message.text("en")


def _refuse_unknown_fields(given: object, known: object) -> None:
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            assert key in known, f"a record has no {key}"
            _refuse_unknown_fields(value, known[key])
    elif isinstance(given, list) and isinstance(known, list | tuple):
        for one, other in zip(given, known, strict=True):
            _refuse_unknown_fields(one, other)


def test_a_host_of_which_nothing_is_known_is_told_of_nothing() -> None:
    assert preflight(HostRecord()).findings == ()


def test_a_record_is_read_back_as_written() -> None:
    for rule in registry.rules(Subject.HOST):
        for example in rule.bad:
            record = recorded(example.text)
            assert recorded(written(record)) == record
