"""Which rules a text may concern: no rule that has something to say is passed over, and few are loaded for nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.engine.logs import Log, read_log
from trimtab.rules import registry
from trimtab.rules.client.context import ClientContext
from trimtab.rules.client.statements import read_statements, statements_of_log
from trimtab.rules.log.context import LogContext
from trimtab.rules.rule import FactMissing, Rule, Subject
from trimtab.rules.triggers import absent, concerned

TOP = Path(__file__).parents[2]
LOGS = sorted((TOP / "tests").rglob("*.log"))
MADE_OF = (Subject.LOG, Subject.CLIENT)
EXAMPLES = [example for subject in MADE_OF for rule in registry.rules(subject) for example in (*rule.bad, *rule.good)]


class WholeLog(LogContext):
    """One in which every pattern is looked for."""

    absent = frozenset[str]()


class WholeText(ClientContext):
    absent = frozenset[str]()


def speaks(rule: Rule, context: LogContext | ClientContext) -> bool:
    try:
        return any(True for _ in rule.check(context))
    except FactMissing:
        return True


def passed_over(log: Log, lines: list[str] | None = None) -> list[str]:
    """Rules that say something of the log, or of the client's text, and would not be run."""
    server = LogContext(log)
    run = concerned(Subject.LOG, server.absent)
    found = [
        rule.code
        for rule in registry.rules(Subject.LOG)
        if speaks(rule, WholeLog(log)) != (rule in run and speaks(rule, server))
    ]
    for said in (statements_of_log(log), *([read_statements(lines)] if lines else [])):
        client = ClientContext(lines=said)
        run = concerned(Subject.CLIENT, client.absent, client.statuses)
        found += [
            rule.code
            for rule in registry.rules(Subject.CLIENT)
            if speaks(rule, WholeText(lines=said)) != (rule in run and speaks(rule, client))
        ]
    return found


def test_no_rule_that_has_something_to_say_of_an_example_is_passed_over() -> None:
    for example in EXAMPLES:
        assert passed_over(read_log([example.text.encode()]), example.text.splitlines()) == [], example.text


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_rule_that_has_something_to_say_of_a_log_is_passed_over(log: Path) -> None:
    assert passed_over(read_log([log.read_bytes()])) == []


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
