"""A tuning from its first trial to its last: asks the search what is next, has it predicted, started and measured, and
writes it down; ends when nothing gains, when the budget is used up, or when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from trimtab.bench.tuning.objective import Objective, Round, score
from trimtab.bench.tuning.policy import Next, Result, Search, Stop, another_round, search
from trimtab.bench.tuning.space import Space
from trimtab.bench.tuning.trials import Forecast, Said, Trial, Trials, results

Ending = Literal["settled", "budget", "interrupted", "failed"]
More = Callable[[Sequence[Round]], bool]


class Foreseen(msgspec.Struct, frozen=True):
    """What is known of a launch before it is started; `skip`: why it is not started at all."""

    forecast: Forecast | None
    command: tuple[str, ...]
    skip: Said | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a start."""

    kind: Literal["measured", "failed", "cut"]
    rounds: tuple[Round, ...] = ()
    cause: Said | None = None
    started: str = ""
    ready_s: float | None = None
    took_s: float = 0.0


class Runner(Protocol):
    """Starts and measures launches of one space."""

    def foresee(self, step: Next, trials: Sequence[Trial]) -> Foreseen: ...

    def start(self, step: Next, seen: Foreseen, number: int, more: More, left_s: float) -> Measured:
        """At most `left_s` seconds; all of it has ended when this returns."""
        ...


class Tuned(msgspec.Struct, frozen=True):
    """How far it came."""

    search: Search
    trials: tuple[Trial, ...]
    ending: Ending


def tune(
    space: Space, objective: Objective, journal: Trials, runner: Runner, left_s: Callable[[], float], rounds: int,
    stopped: Callable[[], bool],
) -> Tuned:  # fmt: skip
    """Go on from what the journal holds. `left_s`: of the budget; `rounds`: of each start, at least."""
    while True:
        known = results(journal.trials, objective)
        found = search(space, known)
        if isinstance(found.step, Stop):
            return Tuned(found, tuple(journal.trials), "failed" if found.step.failed else "settled")
        if stopped():
            return Tuned(found, tuple(journal.trials), "interrupted")
        trial = _tried(space, objective, journal, runner, found.step, known, left_s(), rounds)
        if trial is None:
            return Tuned(found, tuple(journal.trials), "budget")
        journal.append(trial)
        if trial.kind == "cut":
            return Tuned(found, tuple(journal.trials), "interrupted" if stopped() else "budget")


def _tried(
    space: Space, objective: Objective, journal: Trials, runner: Runner, step: Next, known: Sequence[Result],
    left_s: float, rounds: int,
) -> Trial | None:  # fmt: skip
    """One trial; None where a start would not fit in what is left of the budget."""
    number = journal.counted + 1
    seen = runner.foresee(step, journal.trials)
    flag = None if step.knob is None else space.knobs[step.knob].flag
    before, after = (None, None) if step.knob is None else (
        space.value(step.base, step.knob), space.value(step.point, step.knob)
    )  # fmt: skip
    trial = Trial(
        number=number, point=step.point, base=step.base, flag=flag, before=before, after=after, kind="skipped",
        forecast=seen.forecast, cause=seen.skip, command=seen.command,
    )  # fmt: skip
    if seen.skip is not None:
        return trial
    if left_s <= _usual_s(journal.trials):
        return None

    def more(done: Sequence[Round]) -> bool:
        return another_round(space, known, step, [score(objective, one) for one in done], rounds)

    came = runner.start(step, seen, number, more, left_s)
    return msgspec.structs.replace(
        trial, kind=came.kind, rounds=came.rounds, cause=came.cause, started=came.started, ready_s=came.ready_s,
        took_s=came.took_s,
    )  # fmt: skip


def _usual_s(trials: Sequence[Trial]) -> float:
    """What a start takes, by the mean of those that came to their end."""
    took = [one.took_s for one in trials if one.kind == "measured"]
    return sum(took) / len(took) if took else 0.0
