"""Texts that real clients printed, each named by its cause: Node.js 20's fetch against servers of the wrong kinds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from trimtab.engine.logs import read_log
from trimtab.rules.clients import judge_text
from trimtab.rules.doctor import diagnose

TEXTS = sorted((Path(__file__).parents[1] / "fixtures" / "client_texts").glob("*.txt"))


@pytest.mark.parametrize("file", TEXTS, ids=lambda f: f.stem)
def test_the_cause_comes_first(file: Path) -> None:
    wanted = file.name.partition(".")[0]
    text = file.read_text(encoding="utf-8")
    for findings in (judge_text(text.splitlines()).findings, diagnose(read_log([text.encode()])).report.findings):
        assert findings
        assert findings[0].rule.cause == wanted


WORDINGS = [
    json.loads(line) for line in (TEXTS[0].parents[1] / "client_wordings.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda w: w["text"][:40])
def test_one_line_in_the_words_of_many_clients(wording: dict[str, Any]) -> None:
    found = judge_text(wording["text"].splitlines()).findings
    assert found
    assert (found[0].rule.cause or found[0].rule.name) in wording["causes"]


def test_a_long_text_is_judged_in_a_second() -> None:
    lines = [f"error {'tool choice model localhost refused ' * 100} {'x' * n}" for n in range(1000)]
    began = time.process_time()
    judge_text(lines)
    assert time.process_time() - began < 5.0
