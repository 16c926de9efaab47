"""The largest value that fits, also where a larger one fits again because captured sizes go up in steps."""

from __future__ import annotations

from trimtab.facts.catalogue.lookup import find_model
from trimtab.facts.gpu import parse_gpus
from trimtab.plan.memory import Given, cards_of, release
from trimtab.plan.memory.whatif import WhatIf

CASE = WhatIf(
    Given({"max_model_len": 8192}),
    release("0.26"),
    find_model("Qwen/Qwen3-8B").facts(),
    cards_of(parse_gpus("RTX 3090")),
)


def test_the_largest_is_found_among_rising_values() -> None:
    assert CASE.largest("max_num_seqs", range(1, 1000), lambda b: b.settings.max_num_seqs <= 351) == 351


def test_a_gap_below_the_largest_is_stepped_over() -> None:
    taken = set(range(1, 352)) - {350} | {352, 354}
    assert CASE.largest("max_num_seqs", range(1, 1000), lambda b: b.settings.max_num_seqs in taken) == 354


def test_nothing_fits() -> None:
    assert CASE.largest("max_num_seqs", range(1, 10), lambda b: False) is None
