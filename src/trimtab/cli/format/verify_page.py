"""A verification as one page: the verdict, every criterion with its evidence, pictures of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab import __version__
from trimtab.bench.baseline import Change, told, worse
from trimtab.bench.charts import Chart, Mark, Series
from trimtab.bench.criterion import Criterion, Verdict
from trimtab.bench.page import Block, Cell, Note, Page, Section, State, Table, Text
from trimtab.bench.verify import Verification
from trimtab.cli.format.verify import capacity_lines, verdict, verdict_of
from trimtab.messages import Message, msg

_STATES: dict[Verdict, State] = {
    "passed": "good", "failed": "bad", "not_applicable": "plain", "not_measured": "unknown",
}  # fmt: skip


def page(outcome: Verification, changes: Sequence[Change] | None = None) -> Page:
    """The report; pictures stand only where something was measured again and again."""
    state: State = "good" if outcome.passed else "unknown" if outcome.passed is None else "bad"
    facts: list[tuple[Text, Text]] = [(msg("server"), outcome.url), (msg("model"), outcome.model)]
    facts += [(msg("memory"), line) for line in capacity_lines(outcome.capacity)]
    sections = [Section(msg("Criteria"), tuple(_criteria(outcome)))]
    if changes is not None:
        sections.insert(0, _against(changes))
    pictures = [chart for criterion in outcome.criteria for chart in _charts(criterion, outcome)]
    if pictures:
        sections.append(Section(msg("Pictures"), tuple(pictures)))
    said = verdict(outcome.passed)
    if outcome.interrupted:
        said, state = msg("interrupted: the verdicts are of what was done until then"), "unknown"
    head = msg("{verdict} in {seconds:.1f} s", verdict=said, seconds=outcome.seconds)
    return Page(msg("Verification"), Note(head, state), tuple(facts), tuple(sections), f"Trimtab {__version__}")


def _criteria(outcome: Verification) -> list[Block]:
    rows = []
    for c in outcome.criteria:
        # one paragraph a criterion: a sentence of evidence each, then the next step
        lines = [*c.evidence, *(msg("Next: {step}", step=step) for step in c.next)]
        for at, line in enumerate(lines or [msg("-")]):
            first = at == 0
            rows.append(
                (c.name if first else "", Cell(verdict_of(c), _STATES[c.verdict]) if first else "",
                 f"{c.seconds:.1f}\u00a0s" if first else "", line)
            )  # fmt: skip
    headings = (msg("criterion"), msg("verdict"), msg("time"), msg("evidence"))
    return [Table(headings, tuple(rows), prose=True)]


def _against(changes: Sequence[Change]) -> Section:
    states: Mapping[str, State] = {"worse": "bad", "better": "good"}
    shown = [c for kind in ("worse", "better") for c in changes if c.outcome == kind]
    count = len(worse(changes))
    head = msg("{n} got worse", n=count) if count else msg("nothing got worse")
    notes = [Note(told(change), states[change.outcome]) for change in shown]
    rows = tuple((f"{c.criterion} {c.name}", c.before, c.now) for c in changes if c.name)
    table = (Table((msg("figure"), msg("before"), msg("now")), rows),) if rows else ()
    return Section(msg("Against the baseline"), (Note(head, "bad" if count else "good"), *notes, *table))


def _charts(c: Criterion, outcome: Verification) -> list[Chart]:
    found: list[Chart] = []
    titles: Mapping[str, tuple[Message, Message, Message]] = {
        "rate": (msg("Rate at each step"), msg("requests at once"), msg("tokens/s")),
        "recall": (msg("Facts found again, by depth"), msg("depth in %"), msg("found")),
        "host_mib": (msg("Memory of the host"), msg("seconds"), msg("MiB")),
        "gpu_mib": (msg("Memory of the cards"), msg("seconds"), msg("MiB")),
        "gaps alone": (msg("Gaps of the short streams"), msg("percentile"), msg("ms")),
    }
    for name, points in c.series.items():
        if name not in titles or len(points) < 2:
            continue
        title, x_name, y_name = titles[name]
        x, y = tuple(zip(*points, strict=True))
        series = [Series(name, x, y, "points" if name == "recall" else "line")]
        marks: tuple[Mark, ...] = ()
        if name == "gaps alone":
            beside = c.series.get("gaps beside a long prompt", ())
            bx, by = tuple(zip(*beside, strict=True)) if beside else ((), ())
            series = [Series(msg("alone"), x, y), Series(msg("beside a long prompt"), bx, by)]
            marks = (Mark(msg("bound"), outcome.limits.itl_ms, "y"),)
        found.append(Chart(title, x_name, y_name, tuple(series), marks, y_log=name == "gaps alone"))
    return found
