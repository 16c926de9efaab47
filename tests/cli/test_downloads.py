"""A download's progress as it is shown where there is no terminal."""

from __future__ import annotations

import io

import pytest

from trimtab.cli.downloads import ShownDownload, rate
from trimtab.cli.progress import drawn
from trimtab.facts.probe.transfer import Meter, Progress
from trimtab.messages import msg


@pytest.mark.parametrize(
    ("done", "total", "per_s", "said"),
    [
        (0, 10, 0.0, ""),
        (5_000_000, 10_000_000, 12_500_000.0, "12.5 MB/s"),
        (0, 1_000_000_000, 25_000_000.0, "25.0 MB/s, 40 s"),
        (0, 15_000_000_000, 25_000_000.0, "25.0 MB/s, 10 min"),
    ],
)
def test_rate(done: int, total: int, per_s: float, said: str) -> None:
    assert rate(Progress(done, total, per_s)) == said


def test_lines() -> None:
    out = io.StringIO()
    with drawn("en", out) as show:
        watcher = ShownDownload("acme/tiny-1b", show)
        watcher.moved(Progress(1_000_000, 200_000_000, 2_000_000.0))
        watcher.noted(msg("using the copy in the cache"))
    first, second = out.getvalue().splitlines()
    assert first.endswith("downloading acme/tiny-1b (2.0 MB/s, 2 min) 1.0 of 200.0 MB")
    assert second.endswith("using the copy in the cache")


def test_the_meter_forgets_old_rates_and_does_not_count_resumed_bytes() -> None:
    now = [0.0]
    meter = Meter(1000, clock=lambda: now[0])
    meter.place("a", 500)
    now[0] = 1.0
    meter.add("a", 100)
    assert meter.progress() == Progress(600, 1000, 100.0)
    now[0] = 20.0
    assert meter.progress() == Progress(600, 1000, 0.0)
