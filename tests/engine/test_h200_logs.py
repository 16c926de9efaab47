"""Debug logs of real starts on H200 (vLLM 0.26.0), trimmed: what they tell of memory, and how failures end."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.engine.logs import Kind, collect, failure_summary

LOGS = Path(__file__).parents[1] / "fixtures" / "logs" / "h200"


@pytest.mark.parametrize(
    ("name", "weights_gib", "kv_gib"),
    [
        ("v1-graph-cold-2048", 14.29, 109.89),
        ("next-eager-8192", 38.02, 86.14),
        ("tp2-graph", 7.16, 117.94),
        ("vision-v1-eager", 12.97, 109.22),
        ("fail-kv-small", 15.0, 5.44),
        ("fail-no-blocks", 14.29, -0.88),
    ],
)
def test_memory(name: str, weights_gib: float, kv_gib: float) -> None:
    numbers: dict[str, float] = {}
    for event in collect((LOGS / f"{name}.log").read_text().splitlines()):
        numbers |= event.numbers
    assert numbers["weights_gib"] == weights_gib
    assert numbers["kv_gib"] == kv_gib


def test_capture() -> None:
    for name, taken in (("v1-graph-cold-2048", 0.46), ("tp2-graph", 0.48), ("kv-bytes-graph", 0.15)):
        events = collect((LOGS / f"{name}.log").read_text().splitlines())
        assert next(e.numbers["graph_gib"] for e in events if e.kind is Kind.CAPTURED) == taken


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fail-held", "Free memory on device cuda:0 (38.77/139.8 GiB) on startup is less than desired"),
        ("fail-kv-small", "16.0 GiB KV cache is needed"),
        ("fail-no-blocks", "No available memory for the cache blocks"),
        ("fail-util995", "CUDA error: out of memory"),
    ],
)
def test_failures(name: str, told: str) -> None:
    events = collect((LOGS / f"{name}.log").read_text().splitlines())
    assert any(told in line for line in failure_summary(events))
