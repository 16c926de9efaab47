"""The fault drill, a few times each: nothing left over, nothing lost, serving again within its bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fault_drill import DRILLS, Row, table

QUICK = ("supervisor", "core-stopped", "restarts")


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_leaves_nothing_and_loses_nothing(tmp_path: Path, name: str) -> None:
    _, drill = DRILLS[name]
    row = drill(tmp_path, 2)
    assert row.times == 2
    assert row.sound, row


def test_the_drill_is_as_long_as_it_says() -> None:
    assert sum(times for name, (times, _) in DRILLS.items() if name != "restarts") >= 200
    assert DRILLS["restarts"][0] == 1000


def test_what_was_left_over_or_lost_is_not_sound() -> None:
    assert Row("x", 3).sound
    assert not Row("x", 3, orphans=1).sound
    assert not Row("x", 3, lost=1).sound
    assert not Row("x", 3, late=1).sound
    assert "| x | 3 | 0 | 1 | 0 | - | - |  |" in table([Row("x", 3, lost=1)])
