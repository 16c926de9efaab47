"""One round of a trial that is too short for any answer: told of the first, counted as slow afterwards."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import Knobs, serving
from trimtab.bench.load import Load, Shape, read_lengths
from trimtab.cli.trial import Task
from trimtab.cli.trial_apart import measured
from trimtab.errors import EngineError

SLOW = Knobs(key="sk-1", models=("m",), hang_streams=True)
TASK = Task(Shape(read_lengths("40"), read_lengths("5")), Load(2, duration_s=0.5), 0, None, 512)


def test_the_first_round_says_that_it_is_too_short() -> None:
    with serving(SLOW) as fake, pytest.raises(EngineError, match=r"within a round of 0\.5 s"):
        measured(fake.base_url, "sk-1", "m", TASK, 0)


def test_a_later_round_that_was_held_up_counts_as_it_was() -> None:
    with serving(SLOW) as fake:
        found = measured(fake.base_url, "sk-1", "m", TASK, 1)
    assert found.requests == 0
    assert found.e2e_mean_s is None
