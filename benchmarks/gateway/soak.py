"""A gateway at half of its load for a long time: memory and latency must stay flat.

    python benchmarks/gateway/soak.py [--minutes 60] [--rate N] [--streams 16] [--out FILE] [--json]

First it is measured how many plain requests a second 16 connections get; half of that, at fixed moments, and as many
streams as named run until the end, in segments of equal length. Memory counts from the second segment on, when pools
and caches are filled. Exit code 1 when it grows by more than 1 MB an hour and 2% of itself, when a request fails, or
when the last segments' median or p99 latency is more than 1.5 times the first ones'.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import peers
from load import CELLS, Cell, Load, measure, memory_mb

SEGMENTS = 12


def segment(running: peers.Started, rate: float, streams: int, seconds: float) -> dict[str, Any]:
    """One stretch: memory at its end, latency of the plain requests, delay of the streams' chunks."""
    cells = Cell("half", "plain", 16, rate=rate), Cell("streams", "stream", streams, every_us=20_000)
    loads = [Load(running.port, cell, key=running.key, warm_s=0.2, seconds=seconds) for cell in cells]
    plain, streamed = (load.result() for load in loads)
    resident, shared = memory_mb(running.pid)
    return {
        "at": time.time(), "rss_mb": resident, "pss_mb": shared, "requests": plain["requests"],
        "streams": streamed["requests"], "errors": plain["errors"] + streamed["errors"] + streamed["short_streams"],
        "redialed": plain["redialed"] + streamed["redialed"],
        "p50_us": plain["whole_p50_us"], "p99_us": plain["whole_p99_us"], "chunk_p99_us": streamed["delay_p99_us"],
    }  # fmt: skip


def slope_mb_an_hour(rows: list[dict[str, Any]]) -> float:
    """Growth of resident memory by least squares."""
    hours = [row["at"] / 3600 for row in rows]
    return statistics.linear_regression(hours, [row["rss_mb"] for row in rows]).slope


def faults_of(rows: list[dict[str, Any]]) -> list[str]:
    """What is not flat."""
    wrong = [f"{sum(row['errors'] for row in rows)} requests failed"] if any(row["errors"] for row in rows) else []
    settled = rows[1:]
    grown = slope_mb_an_hour(settled) * (settled[-1]["at"] - settled[0]["at"]) / 3600
    hours = (settled[-1]["at"] - settled[0]["at"]) / 3600
    if grown > max(hours, 0.02 * settled[0]["rss_mb"]):
        wrong.append(f"resident memory grew by {grown:.1f} MB in {hours:.2f} h, to {settled[-1]['rss_mb']:.1f} MB")
    third = max(1, len(rows) // 3)
    for name in ("p50_us", "p99_us"):
        first, last = (statistics.median(row[name] for row in part) for part in (rows[:third], rows[-third:]))
        if last > 1.5 * first:
            wrong.append(f"{name} rose from {first:.0f} to {last:.0f}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, help="plain requests a second; default: half of what it can take")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    back_end, ports = peers.start_back_ends()
    with tempfile.TemporaryDirectory(prefix="trimtab-soak-") as name:
        place, port = Path(name), peers.free_port()
        running = peers.start("gateway", peers.gateway(port, ports, place, place), port, place)
        try:
            full = measure(port, running.pid, back_end.pid, CELLS["plain:16"], key=running.key, warm_s=1, seconds=3)
            rate, rows = options.rate or full["requests"] / full["seconds"] / 2, []
            for _ in range(SEGMENTS):
                rows.append(segment(running, rate, options.streams, options.minutes * 60 / SEGMENTS))
                print(f"{rows[-1]}", file=sys.stderr)
        finally:
            peers.stop(running.pid)
            back_end.kill()
    wrong = faults_of(rows)
    report = {"minutes": options.minutes, "rate": round(rate), "slope_mb_an_hour": round(slope_mb_an_hour(rows[1:]), 2),
              "rss_mb": [round(row["rss_mb"], 1) for row in rows], "faults": wrong}  # fmt: skip
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(json.dumps(report) if options.json else "\n".join(f"{name}: {value}" for name, value in report.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
