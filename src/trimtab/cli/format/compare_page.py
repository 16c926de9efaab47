"""A comparison as a page: verdict, measures with pictures, then every prompt with both answers side by side."""

from __future__ import annotations

from trimtab.bench.charts import Chart, Series
from trimtab.bench.comparing.difference import difference
from trimtab.bench.comparing.figures import Figures
from trimtab.bench.comparing.judge import Judged
from trimtab.bench.comparing.prompts import Prompt
from trimtab.bench.comparing.sides import Comparison, Reply
from trimtab.bench.page import Block, Cell, Folded, Literally, Note, Page, Section, Sides, State, Table, Text
from trimtab.cli.format.compare import SHORT, headings, measures, remarks, verdict
from trimtab.cli.format.compare import sides as asked
from trimtab.messages import msg

_MOST_ANSWERS = 200  # prompts whose answers are shown


def page_of(found: Comparison, told: Figures, command: str, version: str) -> Page:
    """`command`: as it was typed, without secrets; `version`: Trimtab's."""
    b = found.b.model if found.b is not None else "-"
    blocks: list[Block] = [Table(headings(), tuple(measures(told)))] if told.paired else []
    blocks += [*_pictures(found), *(Note(line) for line in remarks(found, told))]
    bad = any(told.failures) or any(passed < of for passed, of in told.checks)
    state: State = "unknown" if found.interrupted else "bad" if bad else "good"
    return Page(
        msg("{a} and {b} compared", a=found.a.model, b=b),
        Note(verdict(found, told), state),
        (*((msg("Side"), line) for line in asked(found)), (msg("Command"), command)),
        (
            Section(msg("Figures"), tuple(blocks)),
            Section(msg("Answers"), tuple(_answers(found))),
        ),
        msg("Trimtab {version}. Times are of the monotonic clock, from sending a request.", version=version),
    )


def _pictures(found: Comparison) -> list[Block]:
    """Each pair as a point: on the line both are as fast."""
    charts: list[Block] = []
    for name, short in SHORT.items():
        points = [
            (1000 * x, 1000 * y)
            for a, b in found.pairs
            if (x := getattr(a, name)) is not None and (y := getattr(b, name)) is not None
        ]
        if len(points) < 2:
            continue
        most = max(value for point in points for value in point)
        line = Series(msg("both the same"), (0.0, most), (0.0, most), color=2)  # both axes have the same length
        dots = Series(msg("a pair"), tuple(x for x, _ in points), tuple(y for _, y in points), "points", color=0)
        name_x, name_y = msg("A, ms"), msg("B, ms")
        charts.append(Chart(msg("{name} of each pair", name=short), name_x, name_y, (dots, line), height=3.0))
    return charts


def _answers(found: Comparison) -> list[Block]:
    ones = {r.id: r for r in found.a.replies if r.repeat == 0}
    others = {r.id: r for r in found.b.replies if r.repeat == 0} if found.b is not None else {}
    judged = {one.id: one for one in found.judged}
    blocks: list[Block] = [
        _answer(prompt, ones.get(prompt.id), others.get(prompt.id), judged.get(prompt.id))
        for prompt in found.prompts[:_MOST_ANSWERS]
    ]
    if len(found.prompts) > _MOST_ANSWERS:
        left = len(found.prompts) - _MOST_ANSWERS
        blocks.append(Note(msg("{n} more prompts: their answers are in the JSON", n=left)))
    return blocks


def _answer(prompt: Prompt, a: Reply | None, b: Reply | None, judged: Judged | None) -> Folded:
    replies = [reply for reply in (a, b) if reply is not None]
    bad = any(reply.trouble is not None or reply.failed for reply in replies)
    left, right = difference(a.text if a is not None else "", b.text if b is not None else "")
    blocks: list[Note | Table | Literally | Sides | Chart] = [Literally(prompt.text, msg("Prompt"))]
    blocks.append(Sides((_title("A", a), _title("B", b)), left, right))
    rows = [_row(name, reply) for name, reply in (("A", a), ("B", b)) if reply is not None]
    blocks.append(Table(("", "TTFT, ms", "E2E, ms", msg("tokens"), msg("checks"), msg("trouble")), tuple(rows)))
    if judged is not None:
        said = judged.verdict
        words = msg("malformed") if said is None else msg("tie") if said == "tie" else said.upper()
        blocks.append(Note(msg("Judge: {verdict} (A first: {one}, B first: {two})", verdict=words,
                               one=judged.a_first, two=judged.b_first)))  # fmt: skip
    same = a is not None and b is not None and a.text == b.text
    heading = msg("{id}: the same text", id=prompt.id) if same else msg("{id}", id=prompt.id)
    return Folded(heading, tuple(blocks), "bad" if bad else "plain")


def _title(name: str, reply: Reply | None) -> Text:
    return name if reply is not None else msg("{name}: not asked", name=name)


def _row(name: str, reply: Reply) -> tuple[Text | Cell, ...]:
    return (
        name,
        f"{1000 * reply.ttft_s:.0f}" if reply.ttft_s is not None else "-",
        f"{1000 * reply.e2e_s:.0f}" if reply.e2e_s is not None else "-",
        str(reply.completion_tokens),
        Cell(", ".join(reply.failed), "bad") if reply.failed else "-",
        Cell(reply.trouble, "bad") if reply.trouble is not None else "-",
    )
