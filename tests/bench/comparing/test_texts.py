"""Prompts, checks, differences and the judge's words."""

from __future__ import annotations

import asyncio

import pytest

from trimtab.bench.comparing.checks import failed_checks, require
from trimtab.bench.comparing.difference import difference, likeness
from trimtab.bench.comparing.judge import judge, read
from trimtab.bench.comparing.prompts import Prompt, read_prompts, shipped_prompts
from trimtab.errors import UsageError


def test_the_prompts_that_come_along_are_good() -> None:
    prompts = shipped_prompts()
    assert len(prompts) == 12
    require(prompts)
    assert sum(prompt.checked for prompt in prompts) >= 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds none"),
        ("{", "line 1"),
        ('{"prompt": "a"}\n{"prompt": "b", "colour": 1}', "line 2.*colour"),
        ("{}", "either prompt or messages"),
        ('{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}', "either"),
        ('{"prompt": "a", "regex": "("}', "regex"),
        ('{"id": "x", "prompt": "a"}\n{"id": "x", "prompt": "b"}', "twice"),
        ('{"prompt": "a", "max_tokens": -1}', "max_tokens"),
        ('{"prompt": "\\ud800"', "line 1"),
    ],
)
def test_bad_prompts_are_named_by_their_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_prompts(text.encode())


def test_a_schema_that_is_none_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="prompt q is none"):
        require([Prompt("q", "a", json_schema={"type": "nothing"})])


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("prompt", "answer", "failed"),
    [
        (Prompt("1", "q", exact="42"), " 42\n", ()),
        (Prompt("1", "q", exact="42"), "It is 42", ("exact",)),
        (Prompt("1", "q", regex=r"\b42\b"), "It is 42.", ()),
        (Prompt("1", "q", regex=r"\b42\b"), "142", ("regex",)),
        (Prompt("1", "q", json_schema=SCHEMA), '{"n": 1}', ()),
        (Prompt("1", "q", json_schema=SCHEMA), '```json\n{"n": 1}\n```', ()),
        (Prompt("1", "q", json_schema=SCHEMA), '{"n": "1"}', ("json_schema",)),
        (Prompt("1", "q", json_schema=SCHEMA), 'Sure: {"n": 1}', ("json_schema",)),
        (Prompt("1", "q", json_schema={"type": "null"}), "null", ()),
        (Prompt("1", "q", json_schema={"type": "null"}), "nothing", ("json_schema",)),
        (Prompt("1", "q", exact="a", regex="b"), "", ("exact", "regex")),
    ],
)
def test_checks(prompt: Prompt, answer: str, failed: tuple[str, ...]) -> None:
    assert failed_checks(prompt, answer) == failed


def test_a_difference_gives_both_texts_back_and_marks_the_words() -> None:
    left, right = difference("The ship turns left.", "The ship turns right now.")
    assert "".join(p.text for p in left) == "The ship turns left."
    assert "".join(p.text for p in right) == "The ship turns right now."
    assert [p.text for p in left if p.changed] == ["left"]
    assert "right" in "".join(p.text for p in right if p.changed)


def test_long_texts_are_compared_by_lines_and_soon() -> None:
    one = "\n".join(f"line {at} of the text" for at in range(3000))
    left, _ = difference(one, one.replace("line 7 ", "line seven "))
    assert [p.text for p in left if p.changed] == ["line 7 of the text\n"]
    assert likeness(one, one) == 1.0
    assert 0.99 < likeness(one, one[:-20]) < 1.0
    assert likeness("", "a") == 0.0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('{"winner": "1"}', "1"),
        ('<think>maybe {"winner": "2"}</think>\n{"winner": "tie"}', "tie"),
        ('```json\n{"winner": 2}\n```', "2"),
        ("Answer 1 is better", None),
        ('{"winner": "1"} or {"winner": "2"}', None),
        ('{"winner": "A"}', None),
        ("", None),
        (None, None),
    ],
)
def test_what_a_judge_says_is_read_or_counted_never_guessed(answer: str | None, said: str | None) -> None:
    assert read(answer) == said


def judged(*answers: str | None, texts: tuple[str, str] = ("x", "y")) -> tuple[str | None, bool, list[str]]:
    asked: list[str] = []
    left = list(answers)

    async def ask(prompt: str) -> str | None:
        asked.append(prompt)
        return left.pop(0)

    one = asyncio.run(judge(ask, "1", "{question}", *texts, "mark"))
    return one.verdict, one.agreed, asked


def test_a_side_wins_only_in_both_orders() -> None:
    assert judged('{"winner": "1"}', '{"winner": "2"}')[:2] == ("a", True)
    assert judged('{"winner": "2"}', '{"winner": "1"}')[:2] == ("b", True)
    assert judged('{"winner": "1"}', '{"winner": "1"}')[:2] == ("tie", False)
    assert judged('{"winner": "tie"}', '{"winner": "tie"}')[:2] == ("tie", True)
    assert judged('{"winner": "1"}', "well")[:2] == (None, False)
    assert judged(None, None)[:2] == (None, False)


def test_the_order_is_swapped_and_equal_texts_are_not_asked_about() -> None:
    _, _, asked = judged('{"winner": "1"}', '{"winner": "2"}')
    assert asked[0].index("\nx\n") < asked[0].index("\ny\n")
    assert asked[1].index("\ny\n") < asked[1].index("\nx\n")
    assert judged(texts=("x", "x")) == ("tie", True, [])
