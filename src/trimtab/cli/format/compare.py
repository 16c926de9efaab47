"""A comparison as tables for people, and as JSON, schema `trimtab.compare/1`."""

from __future__ import annotations

import io
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.bench.comparing.figures import Figures
from trimtab.bench.comparing.paired import LEAST, Paired
from trimtab.bench.comparing.sides import Comparison, Side
from trimtab.cli.format.bench import NOTES
from trimtab.cli.format.json import dump
from trimtab.messages import Message, msg

_WIDTH = 110
MEASURES: dict[str, tuple[str | Message, float]] = {  # heading, and what to multiply by
    "ttft_s": (msg("TTFT, ms"), 1000),
    "tpot_s": (msg("TPOT, ms"), 1000),
    "e2e_s": (msg("E2E, ms"), 1000),
    "tokens_s": (msg("tokens/s of one answer"), 1),
    "completion_tokens": (msg("tokens of an answer"), 1),
}
SHORT = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}


def as_json(found: Comparison, told: Figures, version: str) -> str:
    """The whole run: prompts, answers and figures; it can be a side of a later comparison."""
    value: dict[str, Any] = {**msgspec.to_builtins(found), "trimtab": version, "figures": msgspec.to_builtins(told)}
    return dump(value).rstrip()


def as_text(found: Comparison, told: Figures, lang: str) -> str:
    """The verdict first, then who was asked, the measures, then what else is to be known."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False)
    for line in (verdict(found, told), *sides(found)):
        console.print(Text(line.text(lang)), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings()):
        words = heading.text(lang) if isinstance(heading, Message) else heading
        table.add_column(words, justify="left" if not at else "right")
    for row in measures(told):
        table.add_row(*(cell.text(lang) if isinstance(cell, Message) else cell for cell in row))
    if told.paired:
        console.print(table)
    for line in remarks(found, told):
        console.print(Text(line.text(lang)), soft_wrap=True)
    return out.getvalue().rstrip()


def verdict(found: Comparison, told: Figures) -> Message:
    """What a reader wants to know first."""
    if found.b is None:
        line = msg("{n} of {all} prompts were answered", n=len(found.a.whole), all=told.asked)
    elif not told.pairs:
        line = msg("no prompt was answered by both")
    else:
        differing = [
            f"{SHORT[name]} {100 * one.change.value:+.1f}%"
            for name, one in told.paired.items()
            if name in SHORT and one.differs
        ]
        line = msg("B and A take the same time within the noise of {n} pairs", n=told.pairs)
        if told.pairs < LEAST:
            line = msg("{n} pairs are too few to tell B from A: {least} are needed", n=told.pairs, least=LEAST)
        if differing:
            line = msg("B against A over {n} pairs: {changes}", n=told.pairs, changes=", ".join(differing))
    return msg("interrupted; of what was done until then: {line}", line=line) if found.interrupted else line


def sides(found: Comparison) -> list[Message]:
    """Who was asked."""
    lines = [_side("A", found.a)]
    return [*lines, _side("B", found.b)] if found.b is not None else lines


def _side(name: str, side: Side) -> Message:
    return msg(
        "{name}: {model} at {url}, {engine}, {when}",
        name=name, model=side.model, url=side.url, when=side.started,
        engine=f"vLLM {side.engine}" if side.engine else msg("engine not told"),
    )  # fmt: skip


def headings() -> tuple[str | Message, ...]:
    """Of `measures`."""
    return (msg("mean of the pairs"), "A", "B", msg("change"), msg("95% interval"), msg("B is less in"), "p")


def measures(told: Figures) -> list[tuple[str | Message, ...]]:
    """A row for each measure."""
    return [_row(name, one) for name, one in told.paired.items()]


def _row(name: str, one: Paired) -> tuple[str | Message, ...]:
    heading, factor = MEASURES[name]
    low, high = one.change.low, one.change.high
    return (
        heading,
        f"{factor * one.a:.1f}",
        f"{factor * one.b:.1f}",
        f"{100 * one.change.value:+.1f}%",
        f"{100 * low:+.1f}% .. {100 * high:+.1f}%" if low is not None and high is not None else "-",
        f"{one.smaller}/{one.count}",
        "-" if one.p is None else f"{one.p:.3f}" if one.p >= 0.001 else "<0.001",
    )


def remarks(found: Comparison, told: Figures) -> list[Message]:
    """Texts, checks, money, judge, failures and what does not fit."""
    lines: list[Message] = []
    if told.likeness is not None:
        lines.append(
            msg("{equal} of {pairs} answers are the same text; the texts agree in {share:.0f}% of their words",
                equal=told.equal_texts, pairs=told.pairs, share=100 * told.likeness)
        )  # fmt: skip
    named = [("A", found.a), *([("B", found.b)] if found.b is not None else [])]
    for at, (name, side) in enumerate(named):
        passed, of = told.checks[at]
        if of:
            lines.append(msg("{name}: {passed} of {of} checks passed", name=name, passed=passed, of=of))
        cost = told.costs[at]
        if cost is not None:
            lines.append(msg("{name}: cost {cost:.6f} by the prices given", name=name, cost=cost))
        for kind, count in sorted(told.failures[at].items()):
            lines.append(msg("{name}: {count} failed: {kind}", name=name, count=count, kind=kind))
        for note, count in side.notes.items():
            lines.append(msg("{name}: {count} of {all}: {note}", name=name, count=count, all=len(side.replies),
                             note=NOTES[note]))  # fmt: skip
    if found.b is not None and found.a.url == found.b.url and any("ab" in o or "ba" in o for o in found.order):
        lines.append(msg("both sides are one server: the second of a pair may find its prompt in the prefix cache"))
    if told.judgement is not None:
        lines += judgement(found, told)
    lines.append(
        msg("asked in an order drawn from seed {seed}, {repeats} times each, which side first too",
            seed=found.seed, repeats=found.repeats)
    )  # fmt: skip
    return lines


def judgement(found: Comparison, told: Figures) -> list[Message]:
    """What the judge said, and how far it is to be trusted."""
    said = told.judgement
    if said is None:
        return []
    lines = [
        msg("judge {model}: A better in {a}, B in {b}, ties {ties} ({equal} of the same text), malformed {malformed}",
            model=found.judge, a=said.a, b=said.b, ties=said.ties, equal=said.equal, malformed=said.malformed)
    ]  # fmt: skip
    if said.agreement is not None:
        lines.append(msg("both orders said the same in {share:.0f}% of those read", share=100 * said.agreement))
    if said.first is not None:
        lines.append(msg("of the answers named {first:.0f}% stood first", first=100 * said.first))
    return lines
