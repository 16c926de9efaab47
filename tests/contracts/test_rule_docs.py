"""Each rule explains itself under five headings, in English and Chinese, with a source, a bad and a good example."""

from __future__ import annotations

import inspect
import sys

import pytest

from trimtab.rules import registry
from trimtab.rules.page import HEADINGS, sections


@pytest.mark.parametrize("code", registry.RULES)
def test_rule_is_documented(code: str) -> None:
    rule = registry.rule(code)
    module = sys.modules[f"trimtab.rules.{registry.RULES[code]}"]
    found = sections(inspect.getdoc(module) or "")
    assert list(found) == list(HEADINGS)
    assert all(len(text) > 15 for text in found.values())
    assert rule.sources
    assert rule.bad
    assert rule.good
    assert rule.summary.zh, "a rule's messages carry their Chinese"
