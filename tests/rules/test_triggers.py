"""Which rules a text may concern: no pattern that matches is taken for absent, and few rules are loaded for nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from trimtab.engine.logs import read_log
from trimtab.rules import registry
from trimtab.rules.client.context import ClientContext
from trimtab.rules.client.statements import read_statements
from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import Subject
from trimtab.rules.triggers import absent, concerned

TOP = Path(__file__).parents[2]
LOGS = sorted((TOP / "tests").rglob("*.log"))
CODES = [code for code in registry.RULES if code.startswith(("LOG", "CLT"))]


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def wrongly_absent(text: str) -> list[str]:
    """Patterns that are taken to match nowhere in the log, or in the client's text, and do."""
    log, said = read_log([text.encode()]), read_statements(text.splitlines())
    read = "\n".join(part for entry in log.entries for part in (entry.text, *entry.frames))
    told = "\n".join(statement.text for statement in said)
    found = [pattern for pattern in LogContext(log).absent if compiled(pattern).search(read)]
    return found + [pattern for pattern in ClientContext(lines=said).absent if compiled(pattern).search(told)]


@pytest.mark.parametrize("code", CODES)
def test_no_pattern_that_matches_an_example_is_taken_for_absent(code: str) -> None:
    rule = registry.rule(code)
    for example in (*rule.bad, *rule.good):
        assert wrongly_absent(example.text) == [], example.text


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_pattern_that_matches_in_a_log_is_taken_for_absent(log: Path) -> None:
    assert wrongly_absent(log.read_text(encoding="utf-8", errors="replace")) == []


def test_few_rules_are_loaded_for_nothing() -> None:
    healthy = LogContext(read_log([(TOP / "tests/engine/logs/cpu-0.32-eager.log").read_bytes()]))
    assert len(concerned(Subject.LOG, healthy.absent)) < len(registry.codes(Subject.LOG)) / 3
    assert len(healthy.absent) > 300


def test_a_rule_that_the_table_does_not_name_is_run() -> None:
    assert registry.rule("LOG999") in concerned(Subject.LOG, absent(Subject.LOG, ""))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(?i)No Space left (?:on|at) (?:device|disk)", {"no space left "}),
        (r"\[?Killed\b|SIGKILL \d+", {"killed", "sigkill "}),
        (r"[Oo]ut of (m)emory", {"out of memory"}),
        (r"(?:a+b|ccc)? then \d+", {" then "}),
        (r"foo(?=bar)bar+", {"foo"}),
        (r"(?:xy){2,} \w+ quite", {" quite"}),
    ],
)
def test_words_that_stand_in_whatever_a_pattern_matches(pattern: str, words: set[str]) -> None:
    code = f"from rule_triggers.literals import literals; print(sorted(literals({pattern!r})))"
    assert of_scripts(code).stdout.strip() == str(sorted(words))


def test_a_pattern_that_matches_without_a_word_is_refused() -> None:
    assert "no word stands in" in of_scripts(r"from rule_triggers.literals import literals; literals(r'\d+|x*')").stderr


def of_scripts(code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path.insert(0, {str(TOP / 'scripts')!r})\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)
