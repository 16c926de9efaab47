"""A measurement as tables for people, and as JSON, schema `trimtab.bench/1`."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.bench.measure import Measured
from trimtab.bench.rows import SCHEMA, plan_values, server_values, summary_values
from trimtab.bench.stats import Distribution, Estimate
from trimtab.messages import Message, msg

_WIDTH = 110
NOTES = {
    "not streamed": msg("answers came whole, not as a stream: no time to the first token can be told"),
    "no usage": msg("answers without a usage: their chunks were counted as tokens"),
    "no text": msg("answers without any text"),
    "fewer tokens than chunks": msg("answers whose usage counts fewer tokens than chunks came: the usage is wrong"),
    "more tokens than asked": msg("answers with more tokens than were asked for"),
    "prompt tokens differ": msg("answers whose usage counts another prompt than /tokenize did"),
}


def as_json(measured: Measured) -> str:
    """The figures as JSON."""
    value = {
        "schema": SCHEMA, "url": measured.url, "model": measured.model, "started": measured.started,
        **plan_values(measured.plan), **summary_values(measured),
    }  # fmt: skip
    del value["kind"]
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_text(measured: Measured, lang: str) -> str:
    """What was found: rates first, then times, then what to know about them."""
    found = measured.summary
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False)
    if measured.outcome.interrupted:
        console.print(msg("interrupted: the figures are of what was done until then").text(lang))
    for line in rates(measured):
        console.print(Text(line.text(lang)), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in (msg("ms"), msg("mean"), "p50", "p90", "p95", "p99", msg("most")):
        table.add_column(heading if isinstance(heading, str) else heading.text(lang), justify="right")
    rows = (("TTFT", found.ttft), ("TPOT", found.tpot), ("ITL", found.itl), ("E2E", found.e2e), ("late", found.late))
    for name, values in rows:
        if values is not None:
            table.add_row(name, *cells(values))
    if table.rows:
        console.print(table)
    for line in remarks(measured):
        console.print(Text(line.text(lang)), soft_wrap=True)
    return out.getvalue().rstrip()


def rates(measured: Measured) -> list[Message]:
    """What was measured, then its rates, then what failed, was cut and was good."""
    found = measured.summary
    lines = [
        msg("{model} at {url}", model=measured.model, url=measured.url),
        msg(
            "{finished} answers in {span:.1f} s: {requests:.2f} requests/s, {output:.0f} output tokens/s, "
            "{total:.0f} tokens/s in all",
            finished=found.finished, span=found.span_s, requests=found.requests_s, output=found.output_tokens_s,
            total=found.total_tokens_s,
        ),
    ]  # fmt: skip
    if found.failed:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(found.failed.items()))
        lines.append(msg("{count} failed: {kinds}", count=sum(found.failed.values()), kinds=kinds))
    if found.cut:
        lines.append(
            msg("{count} were still running at the end and were cut: their times are not counted", count=found.cut)
        )
    if found.good_share is not None and found.goodput_s is not None:
        share = found.good_share
        lines.append(
            msg("goodput {rate:.2f} requests/s: {share:.1f}% kept every target ({low:.1f} to {high:.1f})",
                rate=found.goodput_s, share=100 * share.value, low=100 * (share.low or 0),
                high=100 * (share.high or 0)),
        )  # fmt: skip
    return lines


def remarks(measured: Measured) -> list[Message]:
    """What to know about the figures."""
    lines = [msg("times are from sending to a chunk's arrival; TTFT is the first chunk that holds a choice")]
    server = server_values(measured.outcome.looks)
    if server is not None:
        lines.append(
            msg("the server: at most {running} running, {waiting} waiting, KV cache {kv:.0f}% full, "
                "{preemptions} preemptions",
                running=server.get("most_running", "?"), waiting=server.get("most_waiting", "?"),
                kv=100 * server.get("most_kv_usage", 0), preemptions=server.get("preemptions", "?")),
        )  # fmt: skip
    if not measured.exact_lengths:
        lines.append(msg("prompts are sized by the usage of two samples: this server has no /tokenize"))
    for note, count in measured.outcome.notes.items():
        lines.append(msg("{count} of {all}: {note}", count=count, all=len(measured.outcome.rows), note=NOTES[note]))
    late = measured.summary.late
    if late is not None and late.p99.value > 0.05:
        lines.append(
            msg("requests were sent up to {late:.0f} ms late: this client was too slow for the rate",
                late=1000 * late.most)
        )  # fmt: skip
    lines.append(msg("this client used {share:.1f}% of one core", share=100 * measured.client_cpu_share))
    return lines


def cells(values: Distribution) -> list[str]:
    """Mean, p50, p90, p95, p99 and the most, in ms."""
    texts = [_cell(e) for e in (values.mean, values.p50, values.p90, values.p95, values.p99)]
    return [*texts, f"{1000 * values.most:.1f}"]


def _cell(estimate: Estimate) -> str:
    """The value, and half of its interval where there is one."""
    text = f"{1000 * estimate.value:.1f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} ±{500 * (estimate.high - estimate.low):.1f}"
