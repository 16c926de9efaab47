"""A measurement as a page: verdict, percentiles, how latencies are spread, the run over time, what failed."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from trimtab.bench.bins import spread, token_rate
from trimtab.bench.charts import Chart, Mark, Series
from trimtab.bench.measure import Measured
from trimtab.bench.page import Block, Cell, Note, Page, Section, Table, Text
from trimtab.bench.rows import server_values
from trimtab.bench.stats import Timed
from trimtab.cli.format.bench import cells, rates, remarks
from trimtab.messages import Message, msg

_SLOWEST = 10
_MEANINGS: dict[str, Message] = {
    "TTFT": msg("time to the first chunk"),
    "ITL": msg("time between two chunks"),
    "TPOT": msg("time per token after the first, of each request"),
    "E2E": msg("time to the last chunk"),
}


def page_of(measured: Measured, command: str, version: str) -> Page:
    """`command`: as it was typed, without secrets; `version`: Trimtab's."""
    lines = rates(measured)
    return Page(
        msg("Measurement of {model}", model=measured.model),
        _verdict(measured, lines[1]),
        _facts(measured, command, version),
        (
            Section(msg("Figures"), (*_percentiles(measured), *(Note(line) for line in lines[2:]))),
            Section(msg("How latencies are spread"), tuple(_spreads(measured.outcome.rows))),
            Section(msg("Over time"), tuple(_over_time(measured))),
            Section(msg("What failed"), _failures(measured)),
            Section(msg("Slowest requests"), tuple(_slowest(measured.outcome.rows))),
            Section(msg("To know"), tuple(Note(line) for line in remarks(measured))),
        ),
        msg("Trimtab {version}. Times are of the monotonic clock, from sending a request.", version=version),
    )


def _verdict(measured: Measured, line: Message) -> Note:
    found = measured.summary
    if measured.outcome.interrupted:
        return Note(msg("Interrupted: the figures are of what was done until then. {line}", line=line), "unknown")
    return Note(line, "bad" if found.failed or not found.finished else "good")


def _facts(measured: Measured, command: str, version: str) -> tuple[tuple[Text, Text], ...]:
    plan, load = measured.plan, measured.plan.load
    if plan.trace:
        way = msg("replay of {n} requests of a trace", n=len(plan.trace))
    elif load.rate is not None:
        way = msg("open loop, {rate:g} requests/s, {arrivals}", rate=load.rate, arrivals=load.arrivals)
    else:
        way = msg("closed loop, {n} at once", n=load.concurrency)
    shape = plan.shape
    size = msg("prompt {input}, answer {output} tokens", input=str(shape.input), output=str(shape.output))
    engine = f"vLLM {measured.engine}" if measured.engine else msg("not told")
    facts: list[tuple[Text, Text]] = [
        (msg("Server"), measured.url),
        (msg("Model"), measured.model),
        (msg("Engine"), engine),
        (msg("Begun"), measured.started),
        (msg("Load"), way),
        (msg("Requests"), size if not plan.trace else msg("as the trace has them")),
        (msg("Shared prefix, turns, pictures"), f"{shape.prefix_tokens}, {shape.turns}, {shape.images}"),
        (msg("Seed"), str(plan.seed)),
        (msg("Command"), command),
        (msg("Client"), f"Trimtab {version}, Python {platform.python_version()}, {platform.system()}"),
    ]
    return tuple(facts)


def _percentiles(measured: Measured) -> list[Table]:
    found = measured.summary
    names = (("TTFT", found.ttft), ("ITL", found.itl), ("TPOT", found.tpot), ("E2E", found.e2e), ("late", found.late))
    rows = tuple((name, f"{values.count:,}", *cells(values)) for name, values in names if values is not None)
    headings = (msg("ms"), msg("values"), msg("mean"), "p50", "p90", "p95", "p99", msg("most"))
    caption = msg("± is half of the 95% interval, where there are enough values for one")
    return [Table(headings, rows, caption)] if rows else []


def _spreads(rows: Sequence[Timed]) -> list[Block]:
    whole = [row for row in rows if row.trouble is None]
    values: dict[str, list[float]] = {
        "TTFT": [row.ttft_s for row in whole if row.ttft_s is not None],
        "ITL": [gap for row in whole for gap in row.itl_s],
        "TPOT": [t for row in whole if (t := row.tpot_s) is not None],
        "E2E": [row.e2e_s for row in whole if row.e2e_s is not None],
    }
    charts: list[Block] = [_histogram(name, found) for name, found in values.items() if found]
    return charts or [Note(msg("no request came whole: there is nothing to draw"), "unknown")]


def _histogram(name: str, values: Sequence[float]) -> Chart:
    milliseconds = sorted(1000 * value for value in values)
    bins = spread(milliseconds)
    marks = tuple(
        Mark(f"p{share}", milliseconds[min(len(milliseconds) - 1, len(milliseconds) * share // 100)])
        for share in (50, 90, 99)
    )
    bars = Series(name, bins.edges[:-1], tuple(map(float, bins.counts)), "bars", bins.widths)
    title = msg("{name}: {meaning}", name=name, meaning=_MEANINGS[name])
    return Chart(title, msg("ms"), msg("how many"), (bars,), marks, x_log=bins.log, height=2.2)


def _over_time(measured: Measured) -> list[Block]:
    outcome = measured.outcome
    bins = token_rate(outcome.rows, outcome.span_s)
    tokens = Series(msg("output tokens/s"), bins.edges[:-1], tuple(map(float, bins.counts)), "bars", bins.widths)
    blocks: list[Block] = [Chart(msg("Throughput"), msg("seconds"), msg("output tokens/s"), (tokens,))]
    blocks.append(Chart(msg("Requests"), msg("seconds"), msg("at once"), _at_once(measured)))
    seen = [(look.at, look.vitals) for look in outcome.looks if look.vitals is not None and look.at >= 0]
    usage = [(at, 100 * v.kv_usage) for at, v in seen if v.kv_usage is not None]
    if usage:
        line = Series(msg("KV cache"), tuple(at for at, _ in usage), tuple(share for _, share in usage), "steps")
        blocks.append(Chart(msg("KV cache in use"), msg("seconds"), "%", (line,), height=2.2))
    else:
        blocks.append(Note(msg("the server tells no KV cache usage at /metrics"), "unknown"))
    server = server_values(outcome.looks)
    if server is not None:
        rows = tuple((name, f"{value:,.4g}") for name, value in server.items())
        blocks.append(Table((msg("the server's own counters over the run"), ""), rows))
    return blocks


def _at_once(measured: Measured) -> tuple[Series, ...]:
    """Requests that the client had running, and what the server says of running and waiting ones."""
    changes = sorted(
        change
        for row in measured.outcome.rows
        if row.e2e_s is not None
        for change in ((row.sent_s, 1), (row.sent_s + row.e2e_s, -1))
    )
    x, y, running = [0.0], [0.0], 0
    for at, step in changes:
        running += step
        x.append(at)
        y.append(float(running))
    series = [Series(msg("sent and not answered"), tuple(x), tuple(y), "steps")]
    for name, label in (("running", msg("running in the server")), ("waiting", msg("waiting in the server"))):
        points = [
            (look.at, float(value))
            for look in measured.outcome.looks
            if look.at >= 0 and (value := getattr(look.vitals, name, None)) is not None
        ]
        if points:
            series.append(Series(label, tuple(at for at, _ in points), tuple(value for _, value in points), "steps"))
    return tuple(series)


def _failures(measured: Measured) -> tuple[Block, ...]:
    found = measured.summary
    blocks: list[Block] = []
    if found.failed:
        rows = tuple((Cell(kind, "bad"), str(count)) for kind, count in sorted(found.failed.items()))
        blocks.append(Table((msg("kind"), msg("how many")), rows))
    else:
        blocks.append(Note(msg("nothing failed"), "good"))
    if found.cut:
        said = msg("{count} were still running at the end and were cut: their times are not counted", count=found.cut)
        blocks.append(Note(said))
    return tuple(blocks)


def _slowest(rows: Sequence[Timed]) -> list[Table]:
    slowest = sorted((r for r in rows if r.e2e_s is not None), key=lambda r: -(r.e2e_s or 0))[:_SLOWEST]
    headings = (
        msg("request"), msg("sent, s"), msg("prompt tokens"), msg("output tokens"), "TTFT, ms", "E2E, ms",
        msg("trouble"),
    )  # fmt: skip
    told = tuple(
        (
            str(row.id),
            f"{row.sent_s:.2f}",
            str(row.prompt_tokens),
            str(row.completion_tokens),
            f"{1000 * row.ttft_s:.0f}" if row.ttft_s is not None else "-",
            f"{1000 * (row.e2e_s or 0):.0f}",
            Cell(row.trouble, "bad") if row.trouble is not None else "-",
        )
        for row in slowest
    )
    return [Table(headings, told)] if told else []
