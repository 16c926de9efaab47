"""What /metrics tells, in Prometheus' text format, summed over the workers.

By hand: a few additions a request, 0.7 us where prometheus_client takes 11. Each worker writes its numbers to a file
twice a second and before it answers, so no counter ever runs backwards, whichever worker is asked; one that is started
again goes on from the file of the one before.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from trimtab.gateway.usage import Record

Gauges = Callable[[], Mapping[str, float]]  # sample -> value, at this moment
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
PREFIX = "trimtab_gateway_"
ABOUT = {
    "requests_total": ("counter", "Requests that were passed on, by status as the client saw it (499: it left)."),
    "refused_total": ("counter", "Requests that the gateway refused itself."),
    "prompt_tokens_total": ("counter", "Prompt tokens."),
    "completion_tokens_total": ("counter", "Completion tokens."),
    "cached_tokens_total": ("counter", "Prompt tokens that came from a prefix cache."),
    "uncounted_total": ("counter", "Requests whose tokens the back end did not tell, so that they are estimates."),
    "request_seconds": ("histogram", "Seconds from a whole request to the end of its answer."),
    "first_byte_seconds": ("histogram", "Seconds from a whole request to the first byte of its answer."),
    "requests_in_flight": ("gauge", "Requests that are being answered."),
    "back_end_outstanding": ("gauge", "Requests that a back end is answering."),
    "back_end_ready": ("gauge", "Workers that would ask this back end now."),
    "workers": ("gauge", "Workers that told their numbers."),
    "store_reachable": ("gauge", "Workers that reach the store."),
    "usage_rows_kept": ("gauge", "Rows of usage that are in memory alone."),
}


# What stands where in a row; then come the classes of whole seconds and those of first bytes.
_REQUESTS, _PROMPT, _COMPLETION, _CACHED, _UNCOUNTED, _WHOLE_S, _FIRST_S, _WHOLE = range(8)
_CLASSES = len(SECONDS) + 1
_FIRST = _WHOLE + _CLASSES
_EMPTY = [0, 0, 0, 0, 0, 0.0, 0.0] + [0] * (2 * _CLASSES)


class Metrics:
    """The counters of one worker. `directory`: where the workers' files are; None when there is one worker."""

    def __init__(self, gauges: Gauges, directory: Path | None = None, worker: int = 0) -> None:
        self._gauges = gauges
        self._directory = directory
        self._own = directory / f"{worker}.json" if directory is not None else None
        self._before = _read(self._own) if self._own is not None else {}
        self._rows: dict[tuple[str, str, str, int], list[float]] = {}  # by model, back end, path, status
        self._refused: dict[tuple[int, str], int] = {}

    def count(self, record: Record) -> None:
        """A request that was passed on has ended."""
        group = (record.model, record.back_end, record.path, record.status)
        row = self._rows.get(group)
        if row is None:
            row = self._rows[group] = _EMPTY.copy()
        seconds, first = record.seconds, record.first_byte_s
        row[_REQUESTS] += 1
        row[_PROMPT] += record.prompt_tokens
        row[_COMPLETION] += record.completion_tokens
        row[_CACHED] += record.cached_tokens
        if not record.counted:
            row[_UNCOUNTED] += 1
        row[_WHOLE_S] += seconds
        row[_WHOLE + bisect_left(SECONDS, seconds)] += 1
        if first:
            row[_FIRST_S] += first
            row[_FIRST + bisect_left(SECONDS, first)] += 1

    def refuse(self, status: int, code: str) -> None:
        """A request was refused."""
        self._refused[status, code] = self._refused.get((status, code), 0) + 1

    def write(self) -> None:
        """Tell the other workers."""
        if self._own is not None:
            new = self._own.with_suffix(f".{os.getpid()}")
            new.write_bytes(msgspec.json.encode({"counters": self._counters(), "gauges": self._now()}))
            new.replace(self._own)

    def text(self) -> bytes:
        """The page."""
        if self._directory is None:
            return _page({**self._counters(), **self._now()})
        self.write()
        total: dict[str, float] = {}
        for file in sorted(self._directory.glob("*.json")):
            for part in ("counters", "gauges"):
                for sample, value in _read(file, part).items():
                    total[sample] = total.get(sample, 0) + value
        return _page(total)

    def _now(self) -> dict[str, float]:
        return {**self._gauges(), "workers": 1}

    def _counters(self) -> dict[str, float]:
        found = dict(self._before)
        for (model, back_end, path, status), row in self._rows.items():
            labels = f"model={quoted(model)},back_end={quoted(back_end)}"
            _add(found, f'requests_total{{{labels},path={quoted(path)},status="{status}"}}', row[_REQUESTS])
            for name, at in (("prompt", _PROMPT), ("completion", _COMPLETION), ("cached", _CACHED)):
                _add(found, f"{name}_tokens_total{{{labels}}}", row[at])
            _add(found, f"uncounted_total{{{labels}}}", row[_UNCOUNTED])
            _times(found, "request_seconds", labels, row[_WHOLE:_FIRST], row[_WHOLE_S])
            _times(found, "first_byte_seconds", labels, row[_FIRST:], row[_FIRST_S])
        for (refused, code), n in self._refused.items():
            _add(found, f'refused_total{{status="{refused}",code={quoted(code)}}}', n)
        return found


def _times(found: dict[str, float], name: str, labels: str, classes: list[float], total: float) -> None:
    n = 0.0
    for bound, more in zip((*SECONDS, "+Inf"), classes, strict=True):
        n += more
        _add(found, f'{name}_bucket{{{labels},le="{bound}"}}', n)
    _add(found, f"{name}_sum{{{labels}}}", total)
    _add(found, f"{name}_count{{{labels}}}", n)


def _add(found: dict[str, float], sample: str, value: float) -> None:
    found[sample] = found.get(sample, 0) + value


def _read(file: Path, part: str = "counters") -> dict[str, float]:
    """A worker's numbers; none of one that has not written yet."""
    with suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, float]])
        return found.get(part, {})
    return {}


def _page(samples: dict[str, float]) -> bytes:
    families: dict[str, list[str]] = {}
    for sample, value in samples.items():
        name = sample.partition("{")[0]
        family = name if name in ABOUT else name.rpartition("_")[0]  # of a histogram's parts
        families.setdefault(family, []).append(f"{PREFIX}{sample} {value:.17g}")
    lines: list[str] = []
    for family, (kind, about) in ABOUT.items():
        if family in families:
            lines += [f"# HELP {PREFIX}{family} {about}", f"# TYPE {PREFIX}{family} {kind}", *families[family]]
    return ("\n".join(lines) + "\n").encode()


def quoted(text: str) -> str:
    """A label's value."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
