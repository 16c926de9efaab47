"""`trimtab bench URL`: measure a running server under a load."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Literal

from trimtab import __version__
from trimtab.bench.endpoint import Target
from trimtab.bench.load import Load, Shape, Wanted, read_lengths, read_trace
from trimtab.bench.measure import Measured, Plan, measure
from trimtab.bench.rows import lines
from trimtab.bench.stats import Targets
from trimtab.bench.wire import Bounds
from trimtab.cli import options, pages
from trimtab.cli.format.bench import as_json, as_text
from trimtab.cli.progress import drawn
from trimtab.cli.settings import lang
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor.progress import Observer, Progress


def run(
    url: options.ServerUrl,
    key: options.Key = None,
    model: options.ServedModel = None,
    concurrency: options.Concurrency = None,
    rate: options.Rate = None,
    arrivals: options.Arrivals = "poisson",
    replay: options.Replay = None,
    requests: options.Requests = None,
    duration: options.LoadSeconds = None,
    input: options.InputLengths = "512",
    output: options.OutputLengths = "128",
    prefix: options.PrefixTokens = 0,
    prefixes: options.Prefixes = 1,
    turns: options.Turns = 1,
    images: options.Images = 0,
    goodput: options.Goodput = None,
    warmup: options.Warmup = 2,
    seed: options.Seed = 0,
    timeout: options.FirstTokenTimeout = 300.0,
    rows: options.RowsFile = None,
    html: options.HtmlFile = None,
    json: options.AsJson = False,
) -> int:
    """Measure a running server: throughput, times to the first and between tokens, goodput."""
    pages.ready(html)
    shape = Shape(read_lengths(input), read_lengths(output), prefix, prefixes, turns, images)
    load = _load(concurrency, rate, arrivals, requests, duration, warmup)
    trace = _trace(replay, shape, seed)
    plan = Plan(Target(url, key or None, model), shape, load, seed, _targets(goodput), trace, Bounds(first_s=timeout))
    with drawn(lang()) as show:
        measured = measure(plan, partial(_show, show, len(trace) or load.requests))
    if rows is not None:
        _write(rows, measured)
    print(as_json(measured) if json else as_text(measured, lang()))
    if html is not None:
        from trimtab.cli.format.bench_page import page_of

        pages.write(html, page_of(measured, pages.command((key or "",)), __version__), lang())
    if measured.outcome.interrupted:
        return 130
    return 1 if measured.summary.failed or not measured.summary.finished else 0


def _show(show: Observer, total: int | None, done: int, failed: int, running: int) -> None:
    words = msg("{done} done, {failed} failed, {running} running", done=done, failed=failed, running=running)
    show(Progress(msg("asking"), words.text(lang()), done, total))


def _load(
    concurrency: int | None, rate: float | None, arrivals: str, requests: int | None, duration: float | None,
    warmup: int,
) -> Load:  # fmt: skip
    if rate is not None and concurrency is not None:
        raise UsageError(
            msg("--rate and --concurrency exclude each other"),
            hint=msg(
                "A rate sends whatever is running (open loop); a concurrency keeps so many running (closed loop)."
            ),
        )
    kinds: dict[str, Literal["poisson", "constant"]] = {"poisson": "poisson", "constant": "constant"}
    if arrivals not in kinds:
        raise UsageError(msg("{text!r} is no kind of arrivals", text=arrivals), hint=msg("Write poisson or constant."))
    if requests is None and duration is None:
        requests = 100
    return Load(concurrency or 8, rate, kinds[arrivals], requests, duration, warmup)


def _trace(path: Path | None, shape: Shape, seed: int) -> tuple[Wanted, ...]:
    if path is None:
        return ()
    try:
        return tuple(read_trace(path.read_bytes(), shape.output, seed))
    except OSError as error:
        raise UsageError(
            msg("cannot read the trace {path}: {reason}", path=path, reason=error.strerror or error)
        ) from None


def _targets(texts: list[str] | None) -> Targets | None:
    if not texts:
        return None
    found: dict[str, float] = {}
    for text in texts:
        name, _, bound = text.partition("=")
        try:
            value = float(bound.removesuffix("ms"))
        except ValueError:
            value = -1.0
        if name not in ("ttft", "tpot", "e2e") or not 0 < value < 1e9:
            raise UsageError(
                msg("{text!r} is no target", text=text),
                hint=msg("Write ttft=500, tpot=50 or e2e=10000, in milliseconds."),
            )
        found[f"{name}_s"] = value / 1000
    return Targets(**found)


def _write(path: Path, measured: Measured) -> None:
    try:
        with path.open("wb") as file:
            file.writelines(lines(measured, __version__))
    except OSError as error:
        print(as_text(measured, lang()), file=sys.stderr)
        raise HostError(
            msg("cannot write {path}: {reason}", path=path, reason=error.strerror or error),
            hint=msg("The figures stand above; name another file with --rows."),
        ) from error
