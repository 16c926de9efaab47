"""Why each change was kept, dropped or not started, in words with the numbers behind them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.bench.tuning.judging import LEAST_GAIN
from trimtab.bench.tuning.objective import Objective, score, shown, unit
from trimtab.bench.tuning.policy import Decision, Search, Stop
from trimtab.bench.tuning.space import Point, Space, Value
from trimtab.bench.tuning.trials import Trial
from trimtab.messages import Message, msg


def score_at(point: Point, trials: Sequence[Trial], objective: Objective) -> float | None:
    """The mean over its starts, as `judging.score` has it; None where it was not measured."""
    starts = [
        sum(score(objective, r) for r in one.rounds) / len(one.rounds)
        for one in trials
        if one.point == point and one.kind == "measured"
    ]
    return sum(starts) / len(starts) if starts else None


def reason(decision: Decision, space: Space, trials: Sequence[Trial], objective: Objective) -> Message:
    """Of one decision. A cause that the journal holds is quoted."""
    if decision.kind != "measured":
        cause = next((t.cause for t in reversed(trials) if t.point == decision.point and t.cause is not None), None)
        why = cause.message() if cause is not None else msg("no cause is known")
        return msg("not started: {why}", why=why) if decision.kind == "skipped" else msg("failed: {why}", why=why)
    if decision.comparison is None:
        return msg("the plan, with which all others are compared")
    return _compared(decision, trials, objective)


def _compared(decision: Decision, trials: Sequence[Trial], objective: Objective) -> Message:
    found = decision.comparison
    assert found is not None
    before, after = (score_at(point, trials, objective) or 0.0 for point in (decision.base, decision.point))
    told = msg(
        "{before} -> {after} {unit} (gain {gain:+.1f}%, noise {bound:.1f}%)",
        before=figure(shown(objective, before)), after=figure(shown(objective, after)), unit=unit(objective),
        gain=100 * found.gain, bound=100 * found.bound,
    )  # fmt: skip
    if decision.kept:
        return msg("kept: {told}", told=told)
    if found.verdict == "unclear":
        return msg("dropped: {told}; measured twice, and still within the noise", told=told)
    if 0 < found.gain < LEAST_GAIN:
        return msg("dropped: {told}; less than {least:.0f}% is not worth a flag", told=told, least=100 * LEAST_GAIN)
    return msg("dropped: {told}", told=told)


def choices(
    found: Search, space: Space, trials: Sequence[Trial], objective: Objective
) -> list[tuple[str, Value, Message]]:
    """Of each knob: flag, the value that it ends with, and why that one and no other."""
    told: list[tuple[str, Value, Message]] = []
    for knob, at in enumerate(space.knobs):
        value = space.value(found.best, knob)
        tried = [one for one in found.decisions if one.knob == knob]
        last_kept = next((one for one in reversed(tried) if one.kept), None)
        if last_kept is not None and value != space.value(space.start, knob):
            told.append((at.flag, value, reason(last_kept, space, trials, objective)))
        elif tried:
            others = {space.value(one.point, knob): reason(one, space, trials, objective) for one in tried}
            listed = [msg("{value} {reason}", value=named(v), reason=why) for v, why in others.items()]
            told.append((at.flag, value, _listed(listed)))
        else:
            told.append((at.flag, value, msg("not tried: the search ended before")))
    return told


def _listed(parts: Sequence[Message]) -> Message:
    found = parts[0]
    for part in parts[1:]:
        found = msg("{first}; {second}", first=found, second=part)
    return found


def ending(found: Search, ended: str) -> Message:
    """Why the search ended."""
    if isinstance(found.step, Stop):
        if found.step.failed:
            return msg("the plan itself could not be measured, so that there is nothing to compare with")
        return msg("no single change gains anything beyond the noise any more")
    if ended == "budget":
        return msg("the budget is used up; the same command goes on with a new one")
    return msg("interrupted; the same command goes on where it was")


def named(value: Value) -> str:
    """A value as people read it."""
    return {None: "-", "true": "on", "false": "off"}.get(value, value or "-")


def figure(number: float) -> str:
    """With as many digits as mean something."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"
