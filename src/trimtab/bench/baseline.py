"""Compare a verification with earlier ones: which verdicts and figures got worse beyond their spread. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from trimtab.bench.criterion import Criterion, Figure
from trimtab.messages import Message, msg

SCHEMA = "trimtab.verify/2"
SINGLE = 0.25  # spread of a figure that was measured once
FLOORS: Mapping[str, float] = {"s": 0.02, "MiB": 16.0}  # differences below it are none, whatever their share


class Change(msgspec.Struct, frozen=True):
    """One verdict or figure beside its baseline."""

    criterion: str
    name: str  # of the figure; "" for the verdict
    outcome: Literal["worse", "better", "same", "not compared"]
    before: str
    now: str


class SavedCriterion(msgspec.Struct, frozen=True):
    """What a saved report holds of a criterion."""

    name: str
    verdict: str
    figures: tuple[Figure, ...] = ()


class Saved(msgspec.Struct, frozen=True):
    """What is read of a saved report; whatever else it holds is passed over."""

    schema: str
    url: str
    model: str
    criteria: tuple[SavedCriterion, ...]
    capacity: dict[str, Any] = {}


def read_saved(data: bytes) -> Saved:
    """A report of this schema; msgspec.DecodeError or ValidationError when `data` is none."""
    found = msgspec.json.decode(data, type=Saved)
    if found.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {found.schema}, not {SCHEMA}")
    return found


def compare(criteria: Sequence[Criterion], baselines: Sequence[Saved], noise: float) -> tuple[Change, ...]:
    """Criterion by criterion; of several baselines the spread reaches from the lowest to the highest."""
    found: list[Change] = []
    for now in criteria:
        before = [c for saved in baselines for c in saved.criteria if c.name == now.name]
        if not before:
            found.append(Change(now.name, "", "not compared", "-", now.verdict))
            continue
        found.append(_verdicts(now, before))
        for figure in now.figures:
            earlier = [f for c in before for f in c.figures if f.name == figure.name]
            if earlier:
                found.append(_figures(now.name, figure, _over_all(earlier), noise))
    return tuple(found)


def worse(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Those that got worse."""
    return tuple(change for change in changes if change.outcome == "worse")


def told(change: Change) -> Message:
    """One change as a sentence."""
    name = f"{change.criterion}: {change.name}" if change.name else change.criterion
    templates = {
        "worse": msg("{name} got worse: {now}, was {before}", name=name, now=change.now, before=change.before),
        "better": msg("{name} got better: {now}, was {before}", name=name, now=change.now, before=change.before),
        "same": msg("{name} as before: {now}, was {before}", name=name, now=change.now, before=change.before),
    }
    return templates.get(
        change.outcome,
        msg("{name} cannot be compared: {now}, was {before}", name=name, now=change.now, before=change.before),
    )


def _verdicts(now: Criterion, before: Sequence[SavedCriterion]) -> Change:
    worst = next((c.verdict for c in before if c.verdict != "passed"), "passed")
    outcome: Literal["worse", "better", "same", "not compared"] = "same"
    if worst != now.verdict:
        outcome = "not compared"
        if (worst == "passed" and now.verdict in ("failed", "not_applicable")) or (
            worst == "not_applicable" and now.verdict == "failed"
        ):
            outcome = "worse"
        elif worst == "failed" and now.verdict == "passed":
            outcome = "better"
    return Change(now.name, "", outcome, worst, now.verdict)


def _over_all(figures: Sequence[Figure]) -> Figure:
    if len(figures) == 1:
        return figures[0]
    values = sorted(f.value for f in figures)
    lows = [f.low if f.low is not None else f.value for f in figures]
    highs = [f.high if f.high is not None else f.value for f in figures]
    return msgspec.structs.replace(figures[0], value=values[len(values) // 2], low=min(lows), high=max(highs))


def _figures(criterion: str, now: Figure, before: Figure, noise: float) -> Change:
    (low, high), (low_before, high_before) = _spread(now), _spread(before)
    floor = max(noise * abs(before.value), FLOORS.get(now.unit, 0.0))
    up = now.value - before.value > floor and low > high_before
    down = before.value - now.value > floor and high < low_before
    outcome: Literal["worse", "better", "same"] = "same"
    if up or down:
        outcome = "worse" if up == (now.better == "less") else "better"
    return Change(criterion, now.name, outcome, _shown(before), _shown(now))


def _spread(figure: Figure) -> tuple[float, float]:
    if figure.low is None or figure.high is None:
        return figure.value * (1 - SINGLE), figure.value * (1 + SINGLE)
    return figure.low, figure.high


def _shown(figure: Figure) -> str:
    known = figure.low is not None and figure.high is not None
    spread = f" ({_number(figure.low or 0.0)} to {_number(figure.high or 0.0)})" if known else ""
    return f"{_number(figure.value)} {figure.unit}{spread}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
