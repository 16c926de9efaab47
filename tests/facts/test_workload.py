"""Workload specs as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import UsageError
from trimtab.facts.workload import Workload, parse_workload


def test_a_whole_spec() -> None:
    found = parse_workload("prompt=2k, output=500, users=32, rps=4.5, prefix=1k, longest=32k, images=2")
    assert found == Workload(2000, 500, 32, 4.5, 1000, 32000, 2)
    assert found.longest == 32000
    assert found.tokens_at_once == 1000 + 32 * 1500


def test_defaults() -> None:
    assert parse_workload("") == Workload()
    assert Workload(100, 50).longest == 150


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("prompt", "no part 'prompt'"),
        ("speed=3", "no part 'speed=3'"),
        ("prompt=", "'prompt=' is not a usable number"),
        ("prompt=-3", "'prompt=-3' is not a usable number"),
        ("prompt=1.5", "'prompt=1.5' is not a usable number"),
        ("users=0", "'users=0' is not a usable number"),
        ("prompt=9999999m", "'prompt=9999999m' is not a usable number"),
        ("in=1,prompt=2", "gives prompt twice"),
        ("prompt=10,prefix=20", "shared prefix of 20 tokens is longer than the prompt of 10"),
    ],
)
def test_a_wrong_part_is_named(spec: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_workload(spec)
    assert reason in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(spec: str) -> None:
    try:
        assert parse_workload(spec).tokens_at_once > 0
    except UsageError:
        return
