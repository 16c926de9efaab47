"""A tuning as a page with pictures: every trial, what was kept, and what it did to the times of the clients."""

from __future__ import annotations

from trimtab.bench.charts import Chart, Series
from trimtab.bench.page import Block, Cell, Literally, Note, Page, Section, State, Table
from trimtab.bench.tuning.objective import MET, score, shown, unit
from trimtab.bench.tuning.reasons import choices, ending, figure, named
from trimtab.bench.tuning.trials import Trial
from trimtab.cli.format.plan import shell
from trimtab.cli.format.tune import RULE, Report, change, counted, measured, verdict
from trimtab.messages import Message, msg


def page(report: Report) -> Page:
    """The whole report."""
    good = report.tuned.ending == "settled" and (report.good_share is None or report.good_share >= MET)
    offered = report.offered
    load = msg("{n} requests at once, {given:,} tokens in, {made:,} out", n=offered.concurrency,
               given=offered.input_tokens, made=offered.output_tokens)  # fmt: skip
    return Page(
        title=msg("Tuning of {model}", model=_model(report)),
        verdict=Note(counted(report), "good" if good else "unknown"),
        facts=(
            (msg("ended"), ending(report.tuned.search, report.tuned.ending)),
            (msg("load"), load),
            (msg("cards"), str(report.arguments["cards"])),
            ("vLLM", str(report.arguments["vllm"])),
            (msg("seed"), str(report.arguments["seed"])),
        ),
        sections=(_trials(report), _times(report), _choices(report), _command(report)),
        foot=RULE,
    )


def _model(report: Report) -> str:
    return report.command.get("served-model-name") or ""


def _trials(report: Report) -> Section:
    rows = tuple(_row(trial, report) for trial in report.tuned.trials)
    headings = (msg("trial"), msg("change"), msg("KV tokens"), msg("free GiB"), msg("ready s"), unit(report.objective),
                msg("verdict"))  # fmt: skip
    picture: tuple[Block, ...] = (_picture(report),) if any(t.rounds for t in report.tuned.trials) else ()
    return Section(msg("Trials"), (*picture, Table(headings, rows, prose=True)))


def _row(trial: Trial, report: Report) -> tuple[Message | str | Cell, ...]:
    seen = trial.forecast
    found = report.decision(trial)
    state: State = "good" if found is not None and found.kept else "bad" if trial.kind == "failed" else "plain"
    return (
        str(trial.number), change(trial),
        f"{seen.kv_tokens:,}" if seen is not None and seen.kv_tokens is not None else "-",
        f"{seen.free_gib:.2f}" if seen is not None and seen.free_gib is not None else "-",
        f"{trial.ready_s:.0f}" if trial.ready_s is not None else "-",
        measured(trial, report.objective), Cell(verdict(trial, report), state),
    )  # fmt: skip


def _picture(report: Report) -> Chart:
    """Each measured start with the range of its rounds, and the best so far as a line."""
    done = [trial for trial in report.tuned.trials if trial.kind == "measured"]
    means = [_mean(trial, report) for trial in done]
    kept = [found is not None and found.kept for found in map(report.decision, done)]
    best, line = means[0], []
    for mean, is_kept in zip(means, kept, strict=True):
        best = mean if is_kept else best
        line.append(best)
    series = [_points(msg("kept"), done, report, [n for n, k in enumerate(kept) if k], 1),
              _points(msg("dropped"), done, report, [n for n, k in enumerate(kept) if not k], 3)]  # fmt: skip
    numbers = tuple(float(n) for n in range(len(done)))
    return Chart(
        msg("Every start, with the range of its rounds"), msg("trial"), unit(report.objective),
        (Series(msg("best so far"), numbers, tuple(line), "steps", color=0), *(s for s in series if s.x)),
        ticks=tuple(str(trial.number) for trial in done),
    )  # fmt: skip


def _points(name: Message, done: list[Trial], report: Report, at: list[int], color: int) -> Series:
    ranges = [[shown(report.objective, score(report.objective, r)) for r in done[n].rounds] for n in at]
    return Series(
        name, tuple(float(n) for n in at), tuple(_mean(done[n], report) for n in at), "points", color=color,
        labels=tuple(named(done[n].after) if done[n].flag else "" for n in at),
        low=tuple(min(r) for r in ranges), high=tuple(max(r) for r in ranges),
    )  # fmt: skip


def _mean(trial: Trial, report: Report) -> float:
    values = [shown(report.objective, score(report.objective, one)) for one in trial.rounds]
    return sum(values) / len(values)


def _times(report: Report) -> Section:
    """What clients waited for in each trial: means over its rounds."""
    rows: list[tuple[Message | str | Cell, ...]] = []
    for trial in report.tuned.trials:
        if not trial.rounds:
            continue
        cells = [
            _figure([getattr(one, name) for one in trial.rounds], by)
            for name, by in (("output_tokens_s", 1), ("ttft_s", 1e3), ("ttft_p99_s", 1e3), ("tpot_s", 1e3),
                             ("itl_p99_s", 1e3))
        ]  # fmt: skip
        most = [_figure([one.server.get(name) for one in trial.rounds], by)
                for name, by in (("most_kv_usage", 100), ("preemptions", 1))]  # fmt: skip
        rows.append((str(trial.number), change(trial), *cells, *most))
    headings = (msg("trial"), msg("change"), msg("output tokens/s"), "TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms",
                "ITL p99 ms", msg("KV cache %"), msg("preemptions"))  # fmt: skip
    return Section(msg("What clients saw"), (Table(headings, tuple(rows), prose=True),))


def _figure(values: list[float | None], by: float) -> str:
    known = [value for value in values if value is not None]
    return figure(by * sum(known) / len(known)) if known else "-"


def _choices(report: Report) -> Section:
    told = choices(report.tuned.search, report.space, report.tuned.trials, report.objective)
    rows = tuple((f"--{flag}", named(value), why) for flag, value, why in told)
    left = tuple((f"--{one.flag}", "-", one.reason) for one in report.untried)
    return Section(msg("Why"), (Table((msg("flag"), msg("value"), msg("reason")), rows + left, prose=True),))


def _command(report: Report) -> Section:
    env = {name: use.value for name, use in report.command.env.items() if use.value is not None}
    return Section(msg("The launch"), (Literally(shell(report.command.argv(), env)),))
