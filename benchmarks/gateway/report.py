"""Tables and verdicts of measured rows: medians over rounds, ratios to nginx within the same round.

    python benchmarks/gateway/report.py [FILE]

prints the table of benchmarks/data/gateway_speed.jsonl
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
Pair = tuple[float, float]


class Target(NamedTuple):
    """What is asked of a figure: `floor` must be met, `goal` is aimed at; the larger the better, or the smaller."""

    name: str
    floor: float
    goal: float
    larger: bool
    figure: Callable[[Row, list[Row]], float | None]


class Verdict(NamedTuple):
    """A target beside what was measured; None: not measured."""

    target: Target
    found: float | None

    @property
    def floor_met(self) -> bool:
        """Whether the figure is at its floor or better, or was not measured."""
        return self.found is None or self._is_met(self.target.floor)

    @property
    def goal_met(self) -> bool:
        """Whether the figure reached its goal."""
        return self.found is not None and self._is_met(self.target.goal)

    @property
    def word(self) -> str:
        """What was reached."""
        if self.found is None:
            return ""
        return "goal" if self.goal_met else "floor" if self.floor_met else "MISSED"

    def _is_met(self, bound: float) -> bool:
        assert self.found is not None
        return self.found >= bound if self.target.larger else self.found <= bound


def cpu_name() -> str:
    """The processor, as the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def short(row: Row) -> str:
    """A row in a few words."""
    what = row["cell"].split(":")[0]
    if what == "open":
        return f"{row['rss_mb'] or 0:.0f}MB"
    wrong = f" ERRORS {row['errors']} {row['error']}" if row["errors"] else ""
    cpu = cpu_us(row)
    figure = f"{row['delay_p99_us']}us p99" if what == "stream" else f"{row['requests'] / row['seconds']:.0f}/s"
    return f"{figure} {cpu:.1f}us{wrong}" if cpu else figure + wrong


def cpu_us(row: Row) -> float:
    """CPU of the peer for each request, of streams for each chunk; 0 for none."""
    count = row["chunks"] if row["cell"].startswith("stream") else row["requests"]
    return float(row.get("cpu_s", 0.0) / count * 1e6) if count else 0.0


def of(rows: list[Row], cell: str, peer: str) -> dict[int, Row]:
    """The rows of a cell and peer by round."""
    return {row["round"]: row for row in rows if row["cell"] == cell and row["peer"] == peer}


def median(rows: list[Row], cell: str, peer: str, figure: Callable[[Row], float]) -> float | None:
    """The median over rounds."""
    found = [figure(row) for row in of(rows, cell, peer).values()]
    return statistics.median(found) if found else None


def paired(rows: list[Row], cell: str, peers: tuple[str, str], figure: Callable[[Row], float]) -> list[Pair]:
    """The figures of two peers within each round."""
    ours, theirs = (of(rows, cell, peer) for peer in peers)
    return [(figure(ours[number]), figure(theirs[number])) for number in sorted(ours.keys() & theirs.keys())]


def ratios(pairs: list[Pair]) -> list[float]:
    """Sorted ratios of the first to the second."""
    return sorted(a / b for a, b in pairs if b)


def _rate(row: Row) -> float:
    return float(row["requests"] / row["seconds"])


def _ratio(cell: str, other: str, figure: Callable[[Row], float] = _rate) -> Callable[[Row, list[Row]], float | None]:
    def found(_: Row, rows: list[Row]) -> float | None:
        every = ratios(paired(rows, cell, ("gateway", other), figure))
        return statistics.median(every) if every else None

    return found


def _added_ms(cell: str, name: str) -> Callable[[Row, list[Row]], float | None]:
    def found(_: Row, rows: list[Row]) -> float | None:
        pairs = paired(rows, cell, ("gateway", "direct"), lambda row: float(row[name]))
        return statistics.median(ours - direct for ours, direct in pairs) / 1000 if pairs else None

    return found


def _own(cell: str, figure: Callable[[Row], float]) -> Callable[[Row, list[Row]], float | None]:
    return lambda _, rows: median(rows, cell, "gateway", figure)


def _start(about: Row, _: list[Row]) -> float | None:
    found = about["peers"].get("gateway")
    return float(found["start_s"]) if found else None


TARGETS = (
    Target("plain, 16 connections: of nginx's requests a second", 0.35, 0.6, True, _ratio("plain:16", "nginx")),
    Target("plain, 64 connections: of nginx's requests a second", 0.35, 0.6, True, _ratio("plain:64", "nginx")),
    Target("plain, 16 connections: of vllm-router's", 1.2, 2.0, True, _ratio("plain:16", "vllm-router")),
    Target("plain, 64 connections: of vllm-router's", 1.2, 2.0, True, _ratio("plain:64", "vllm-router")),
    Target("plain, 16 connections: CPU a request, us", 80, 45, False, _own("plain:16", cpu_us)),
    Target("streams: of nginx's CPU a chunk", 1.3, 1.3, False, _ratio("stream:64", "nginx", cpu_us)),
    Target("streams: delay of a chunk p99, ms", 1, 1, False, _own("stream:64", lambda row: row["delay_p99_us"] / 1000)),
    Target("16 connections, 5,000 requests/s: added p50, ms", 0.3, 0.3, False, _added_ms("rate:16", "whole_p50_us")),
    Target("16 connections, 5,000 requests/s: added p99, ms", 2, 2, False, _added_ms("rate:16", "whole_p99_us")),
    Target("16 connections, as fast as they go: added p50, ms", 0.3, 0.3, False, _added_ms("plain:16", "whole_p50_us")),
    Target("16 connections, as fast as they go: added p99, ms", 2, 2, False, _added_ms("plain:16", "whole_p99_us")),
    Target("start to first answer, s", 1, 1, False, _start),
    Target("1,000 open streams: resident, MB", 100, 100, False, _own("open:1000", lambda row: row["rss_mb"])),
)  # fmt: skip


def verdicts(about: Row, rows: list[Row]) -> list[Verdict]:
    """Each target with its figure."""
    return [Verdict(target, target.figure(about, rows)) for target in TARGETS]


def told(found: list[Verdict]) -> str:
    """The verdicts as a Markdown table."""
    lines = ["| figure | floor | goal | measured | |", "| --- | --- | --- | --- | --- |"]
    for verdict in found:
        target = verdict.target
        number = "not measured" if verdict.found is None else f"{verdict.found:.3g}"
        lines.append(f"| {target.name} | {target.floor:g} | {target.goal:g} | {number} | {verdict.word} |")
    return "\n".join(lines) + "\n"


HEAD = (
    "cell", "peer", "n", "a second", "of nginx's", "CPU us a request or chunk", "of nginx's", "p50 us", "p99 us",
    "others' cores",
)  # fmt: skip


def table(about: Row, rows: list[Row]) -> str:
    """All cells and peers as a Markdown table: medians over rounds, of ratios with their least and largest.

    p50 and p99 are of whole requests, of streams the delay of a chunk; n the rounds.
    """
    lines = [_joined(HEAD), _joined(["---"] * len(HEAD))]
    for cell in dict.fromkeys(row["cell"] for row in rows):
        for peer in dict.fromkeys(row["peer"] for row in rows if row["cell"] == cell):
            what = _open_line if cell.startswith("open") else _line
            lines.append(_joined(what(rows, cell, peer)))
    names = [f"{name} {peer['version']} (start {peer['start_s']:.2f} s)" for name, peer in about["peers"].items()]
    machine = f"{about['date']}, {about['cpu']}, {about['cores']} cores, Python {about['python']}"
    return f"{machine}: {', '.join(names)}\n\n" + "\n".join(lines) + "\n"


def _joined(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _spread(pairs: list[Pair]) -> str:
    every = ratios(pairs)
    return f"{statistics.median(every):.2f} ({every[0]:.2f} to {every[-1]:.2f})" if every else ""


def _open_line(rows: list[Row], cell: str, peer: str) -> list[str]:
    resident = median(rows, cell, peer, lambda row: row["rss_mb"] or 0.0)
    shared = median(rows, cell, peer, lambda row: row["pss_mb"] or 0.0)
    what = f"{resident:.0f} MB resident, {shared:.0f} MB proportional"
    return [cell, peer, str(len(of(rows, cell, peer))), what, *[""] * (len(HEAD) - 4)]


def _line(rows: list[Row], cell: str, peer: str) -> list[str]:
    streams, paced = cell.startswith("stream"), cell.startswith("rate")
    times, count = ("delay", "chunks") if streams else ("whole", "requests")

    def middle(figure: Callable[[Row], float], form: str) -> str:
        return format(median(rows, cell, peer, figure), form)

    found = of(rows, cell, peer)
    errors = sum(row["errors"] + row["short_streams"] for row in found.values())
    rate = middle(lambda row: row[count] / row["seconds"], ",.0f") + (f" ({errors} errors)" if errors else "")
    return [
        cell, peer, str(len(found)), rate,
        "" if streams or paced else _spread(paired(rows, cell, (peer, "nginx"), _rate)),
        "" if peer == "direct" else middle(cpu_us, ".1f"),
        "" if peer == "direct" else _spread(paired(rows, cell, (peer, "nginx"), cpu_us)),
        middle(lambda row: row[f"{times}_p50_us"], ".0f"), middle(lambda row: row[f"{times}_p99_us"], ".0f"),
        middle(lambda row: row["others"], ".2f"),
    ]  # fmt: skip


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "data" / "gateway_speed.jsonl"
    about, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    print(table(about, rows))
    print(told(verdicts(about, rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
