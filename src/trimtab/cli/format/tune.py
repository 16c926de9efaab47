"""A tuning as text: every trial with forecast and figures, the reason of each choice, the command; and as JSON."""

from __future__ import annotations

import io
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.bench.tune import Tuned
from trimtab.bench.tuning.idle import Offered
from trimtab.bench.tuning.judging import LEAST_GAIN, START_ERROR
from trimtab.bench.tuning.knobs import Untried
from trimtab.bench.tuning.objective import MET, Objective, score, shown, too_short, unit
from trimtab.bench.tuning.policy import Decision, Next
from trimtab.bench.tuning.reasons import choices, ending, figure, named, reason, score_at
from trimtab.bench.tuning.space import Space
from trimtab.bench.tuning.trials import SCHEMA, Forecast, Trial
from trimtab.cli.format.plan import shell
from trimtab.engine.command import LaunchCommand
from trimtab.messages import Message, msg

_WIDTH = 120
RULE = msg(
    "A change is kept when its gain is beyond the noise: Student's 99% quantile times the standard errors of both "
    "launches, from the spread of rounds over all starts ({start:.1f}% at least for a start), and {least:.0f}% or "
    "more. "
    "Where that is unclear the same server is measured for more rounds, then started once more.",
    start=100 * START_ERROR, least=100 * LEAST_GAIN,
)  # fmt: skip


class Report(msgspec.Struct, frozen=True):
    """All that is shown of a tuning."""

    tuned: Tuned
    space: Space
    untried: tuple[Untried, ...]
    objective: Objective
    offered: Offered
    arguments: Mapping[str, object]
    command: LaunchCommand

    @property
    def good_share(self) -> float | None:
        """Of the best launch's requests, how many kept every target; None without a target or a measurement."""
        best = self.tuned.search.best
        shares = [r.good_share for t in self.tuned.trials if t.point == best for r in t.rounds]
        told = [share for share in shares if share is not None]
        return sum(told) / len(told) if told else None

    @property
    def starts(self) -> int:
        return sum(one.kind in ("measured", "failed") for one in self.tuned.trials)

    def decision(self, trial: Trial) -> Decision | None:
        """How a trial was judged; None where it was measured once more before that."""
        found = [d for d in self.tuned.search.decisions if (d.point, d.base) == (trial.point, trial.base)]
        later = [t for t in self.tuned.trials if t.point == trial.point and t.number > trial.number]
        return found[0] if found and not later and trial.kind != "cut" else None


def step_line(number: int, step: Next, space: Space, forecast: Forecast | None) -> Message:
    """What is about to be started."""
    said = _changed(step, space)
    if forecast is None or forecast.kv_tokens is None:
        return msg("trial {n}: {change}", n=number, change=said)
    return msg("trial {n}: {change}; {tokens:,} tokens of KV cache are predicted", n=number, change=said,
               tokens=forecast.kv_tokens)  # fmt: skip


def _changed(step: Next, space: Space) -> Message:
    if step.knob is None:
        return msg("the plan")
    before, after = (named(space.value(point, step.knob)) for point in (step.base, step.point))
    flag = f"--{space.knobs[step.knob].flag}"
    if step.again:
        return msg("{flag} {before} -> {after}, once more", flag=flag, before=before, after=after)
    return msg("{flag} {before} -> {after}", flag=flag, before=before, after=after)


def as_text(report: Report, lang: str) -> str:
    """The trials, then each choice, then the command."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, highlight=False)
    console.print(_trials(report, lang))
    lines = ["", ending(report.tuned.search, report.tuned.ending).text(lang), counted(report).text(lang)]
    if report.good_share is not None:
        lines.append(_target(report.good_share).text(lang))
    short = next((said for t in report.tuned.trials for r in t.rounds if (said := too_short(r)) is not None), None)
    if short is not None:
        lines.append(short.text(lang))
    lines += ["", msg("Why:").text(lang)]
    lines += [f"  --{flag} {named(value)}: {why.text(lang)}" for flag, value, why in _choices(report)]
    if report.untried:
        lines += ["", msg("Not tried:").text(lang)]
        lines += [f"  --{one.flag}: {one.reason.text(lang)}" for one in report.untried]
    lines += ["", RULE.text(lang), "", shell(report.command.argv(), _env(report.command))]
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    return out.getvalue().rstrip()


def _env(command: LaunchCommand) -> dict[str, str]:
    return {name: use.value for name, use in command.env.items() if use.value is not None}


def _choices(report: Report) -> list[tuple[str, str | None, Message]]:
    return choices(report.tuned.search, report.space, report.tuned.trials, report.objective)


def counted(report: Report) -> Message:
    """How many starts it took, and what they gained."""
    best = score_at(report.tuned.search.best, report.tuned.trials, report.objective)
    plan = score_at(report.space.start, report.tuned.trials, report.objective)
    if best is None or plan is None:
        return msg(
            "{starts} starts; a grid of the same values has {grid}", starts=report.starts, grid=report.space.size
        )
    return msg(
        "{starts} starts (a grid of the same values has {grid}): {plan} {unit} with the plan, {best} with what was "
        "kept",
        starts=report.starts, grid=report.space.size, plan=figure(shown(report.objective, plan)),
        best=figure(shown(report.objective, best)), unit=unit(report.objective),
    )  # fmt: skip


def _target(share: float) -> Message:
    if share >= MET:
        return msg("{share:.1f}% of the requests keep the target", share=100 * share)
    return msg(
        "the target is not met: with the best launch {share:.1f}% of the requests keep it, {wanted:.0f}% are wanted; "
        "fewer requests at once, shorter ones or more cards would come nearer",
        share=100 * share, wanted=100 * MET,
    )  # fmt: skip


def _trials(report: Report, lang: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    headings = (msg("trial"), msg("change"), msg("KV tokens"), msg("free GiB"), msg("ready s"), unit(report.objective))
    for heading in headings:
        table.add_column(heading.text(lang), justify="left" if heading.template == "change" else "right")
    table.add_column(msg("verdict").text(lang), justify="left", overflow="fold")
    for trial in report.tuned.trials:
        seen = trial.forecast
        table.add_row(
            str(trial.number), change(trial).text(lang),
            f"{seen.kv_tokens:,}" if seen is not None and seen.kv_tokens is not None else "-",
            f"{seen.free_gib:.2f}" if seen is not None and seen.free_gib is not None else "-",
            f"{trial.ready_s:.0f}" if trial.ready_s is not None else "-",
            measured(trial, report.objective), verdict(trial, report).text(lang),
        )  # fmt: skip
    return table


def change(trial: Trial) -> Message:
    """The one flag that a trial changes."""
    if trial.flag is None:
        return msg("the plan")
    return msg("--{flag} {before} -> {after}", flag=trial.flag, before=named(trial.before), after=named(trial.after))


def measured(trial: Trial, objective: Objective) -> str:
    """The mean of its rounds and half of their range, where there are several."""
    values = [shown(objective, score(objective, one)) for one in trial.rounds]
    if not values:
        return "-"
    mean = figure(sum(values) / len(values))
    return f"{mean} ±{figure((max(values) - min(values)) / 2)}" if len(values) > 1 else mean


def verdict(trial: Trial, report: Report) -> Message:
    """What became of a trial, in words."""
    if trial.kind == "cut":
        return msg("cut short; it does not count")
    found = report.decision(trial)
    if found is None:
        return msg("unclear; started once more")
    return reason(found, report.space, report.tuned.trials, report.objective)


def as_json(report: Report, lang: str) -> str:
    """Schema trimtab.tune/1."""
    found = report.tuned
    value = {
        "schema": SCHEMA,
        "ending": found.ending,
        "why_ended": ending(found.search, found.ending).text(lang),
        "arguments": report.arguments,
        "starts": report.starts,
        "grid": report.space.size,
        "unit": unit(report.objective).text("en"),
        "plan": _shown(report, score_at(report.space.start, found.trials, report.objective)),
        "best": _shown(report, score_at(found.search.best, found.trials, report.objective)),
        "good_share": report.good_share,
        "command": report.command.argv(),
        "env": _env(report.command),
        "choices": [
            {"flag": f"--{flag}", "value": one, "reason": why.text(lang)} for flag, one, why in _choices(report)
        ],
        "untried": [{"flag": f"--{one.flag}", "reason": one.reason.text(lang)} for one in report.untried],
        "trials": [
            {**msgspec.to_builtins(one), "cause": one.cause.message().text(lang) if one.cause else None,
             "verdict": verdict(one, report).text(lang)}
            for one in found.trials
        ],
    }  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _shown(report: Report, found: float | None) -> float | None:
    return None if found is None else shown(report.objective, found)
