"""`trimtab tune MODEL`: from the plan, one measured change at a time, to the launch that serves a load best."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import typer

from trimtab import __version__
from trimtab.bench.load import Lengths, Load, Shape
from trimtab.bench.stats import Targets
from trimtab.bench.tune import Foreseen, Measured, More, Tuned, tune
from trimtab.bench.tuning.idle import Offered
from trimtab.bench.tuning.knobs import Knobs, Setting, knobs, knobs_named
from trimtab.bench.tuning.objective import Objective, read_objective, read_targets
from trimtab.bench.tuning.policy import Next
from trimtab.bench.tuning.trials import SCHEMA, Head, Trial, Trials
from trimtab.cli import options
from trimtab.cli.format.tune import Report, as_json, as_text, step_line
from trimtab.cli.gpus import cpu_set, gpu_set
from trimtab.cli.keeping import pins_of
from trimtab.cli.launch import Launch, Wanted, launch_of
from trimtab.cli.notes import Notes
from trimtab.cli.preflight import require_sound_host
from trimtab.cli.settings import dirs, lang
from trimtab.cli.subject import ModelSubject, resolve_subject
from trimtab.cli.trial import Task, Trying
from trimtab.cli.tune_launches import Launches, values_of
from trimtab.cli.tune_result import met, write_plan
from trimtab.cli.up import LOOPBACK, Place
from trimtab.engine.flags import FlagTable
from trimtab.errors import EngineError, UsageError
from trimtab.facts.gpu import GpuSet
from trimtab.facts.probe.gpus import read_gpus
from trimtab.messages import Message, msg
from trimtab.plan.wish import Prefer
from trimtab.supervisor.ports import require_free
from trimtab.supervisor.stopping import Stop, stop_on_signals

START_LEAST_S = 5.0
"""No engine is ready sooner; what --budget must hold beside the rounds of one trial."""
_PREFER: dict[Objective, Prefer] = {"throughput": "throughput", "latency": "latency", "goodput": "balanced"}


class Asked(msgspec.Struct, frozen=True):
    """What the command line says of the search."""

    objective: Objective
    targets: Targets | None
    tried: tuple[str, ...]
    pins: tuple[str, ...]
    lossy: bool
    rounds: int
    round_s: float
    seed: int


def run(
    ctx: typer.Context,
    model: options.ModelRef,
    budget: options.TuneMinutes = 30.0,
    objective: options.TuneObjective = "throughput",
    target: options.TuneTarget = None,
    tried: options.TuneTry = None,
    pins: options.TunePins = None,
    lossy: options.TuneLossy = False,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    input_tokens: options.InputTokens = None,
    output_tokens: options.OutputTokens = None,
    rounds: options.TuneRounds = 3,
    round_s: options.TuneSeconds = 20.0,
    seed: options.Seed = 0,
    name: options.Name = None,
    port: options.Port = None,
    devices: options.Devices = None,
    share: options.Share = False,
    engine: options.EngineName = None,
    engine_python: options.EnginePython = None,
    force: options.Force = False,
    journal: options.TuneJournal = None,
    output: options.TunedFile = None,
    html: options.HtmlFile = None,
    json: options.AsJson = False,
) -> int:
    """Start and measure one launch after the other; flags after `--` are taken as they are and never changed."""
    began = time.monotonic()
    targets = read_targets(target)
    wanted_for = read_objective(objective, targets)
    asked = Asked(wanted_for, targets, tuple(tried or ()), pins_of(pins, ctx.obj), lossy, rounds, round_s, seed)
    _require_budget(budget, rounds, round_s)
    if html is not None:
        from trimtab.cli import pages

        pages.ready(html)
    subject = resolve_subject(model, ctx.obj)
    if not isinstance(subject, ModelSubject):
        raise UsageError(
            msg("{model} is no model: tune begins with a plan", model=model),
            hint=msg("Name the model's directory or id; flags that shall stay go after --."),
        )
    if port is not None:
        require_free(LOOPBACK, port)
    cards = tuple(d.strip() for d in (devices or "").split(",") if d.strip())
    wanted = Wanted(engine, engine_python, context, concurrency, cards, input_tokens, output_tokens,
                    _PREFER[wanted_for])  # fmt: skip
    launch = launch_of(subject, wanted, Notes(lang()))
    place = Place(name, LOOPBACK, port, cards, share, force)
    require_sound_host(launch, LOOPBACK, port, devices=cards, force=force)
    tuning = Tuning(launch, place, asked)
    file = journal or tuning.default_journal()
    report = tuning.run(file, began + 60 * budget)
    return _told(report, tuning, file, output, html, json=json)


def _require_budget(minutes: float, rounds: int, round_s: float) -> None:
    least = rounds * round_s + START_LEAST_S
    if minutes * 60 < least:
        raise UsageError(
            msg("a budget of {minutes:g} minutes holds no trial: {rounds} rounds of {each:g} s and a start take "
                "{least:.0f} s at least", minutes=minutes, rounds=rounds, each=round_s, least=least),
            hint=msg("Raise --budget, or shorten the rounds: --round {each:g}.", each=max(1.0, round_s / 4)),
        )  # fmt: skip


class Tuning:
    """One search: its space, its journal's arguments, and how its launches are started."""

    def __init__(self, launch: Launch, place: Place, asked: Asked) -> None:
        plan = launch.plan
        assert plan is not None
        self.launch, self.place, self.asked = launch, place, asked
        on_cpu = plan.budget.tightest.card.vendor == "cpu"
        self._gpus: GpuSet = cpu_set() if on_cpu else gpu_set(read_gpus().cards, place.devices)
        self._table = FlagTable.for_version(launch.engine.version, "cpu" if on_cpu else "cuda")
        told = plan.estimate
        assert told is not None
        self.offered = Offered(plan.wish.concurrency or 1, told.input_tokens, told.output_tokens)
        self.knobs = self._knobs(on_cpu)
        self.launches = Launches(
            launch, self.knobs.space, self.offered, asked.objective, self._gpus, self._table, frozenset(asked.pins)
        )  # fmt: skip
        shape = Shape(Lengths("fixed", self.offered.input_tokens), Lengths("fixed", self.offered.output_tokens))
        load = Load(self.offered.concurrency, duration_s=asked.round_s, warmup=min(2, self.offered.concurrency))
        dummy = launch.command.get("load-format") == "dummy"
        self._task = Task(shape, load, asked.seed, asked.targets, launch.context, dummy)
        self.stop = Stop()
        self.tell: Callable[[Message], None] = _say

    def _knobs(self, on_cpu: bool) -> Knobs:
        asked = self.asked
        setting = Setting(
            values_of(self.launch.command), asked.objective, self.offered.concurrency, on_cpu, os.cpu_count() or 1,
            frozenset(pin.strip().lstrip("-").replace("_", "-") for pin in asked.pins), asked.lossy,
        )  # fmt: skip
        return knobs_named(self._table, setting, asked.tried) if asked.tried else knobs(self._table, setting)

    @property
    def arguments(self) -> dict[str, object]:
        """All that decides what is tried and how it is measured."""
        plan = self.launch.plan
        assert plan is not None
        return {
            "plan": self.launch.command.command_line(),
            "vllm": self.launch.engine.version,
            "cards": f"{len(plan.budget.cards)} x {plan.budget.cards[0].name}",
            "load": msgspec.to_builtins(self.offered),
            "objective": self.asked.objective,
            "targets": msgspec.to_builtins(self.asked.targets),
            "rounds": self.asked.rounds,
            "round_s": self.asked.round_s,
            "seed": self.asked.seed,
            "knobs": {knob.flag: list(knob.values) for knob in self.knobs.space.knobs},
        }

    def default_journal(self) -> Path:
        """In the state directory; the same arguments have the same one."""
        from hashlib import sha256

        mark = sha256(msgspec.json.encode(self.arguments, order="deterministic")).hexdigest()[:12]
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in self.launch.served_model)[:50]
        return dirs().state / "tune" / f"{name}-{mark}.jsonl"

    def run(self, file: Path, end: float) -> Report:
        """Search until it ends, `end` (monotonic) at the latest."""
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        journal = Trials(file, Head(schema=SCHEMA, trimtab=__version__, started=started, arguments=self.arguments))
        _say(msg("{done} trials are known from {file}", done=len(journal.trials), file=file))
        try:
            with stop_on_signals() as self.stop:
                found = tune(
                    self.knobs.space, self.asked.objective, journal, self, lambda: end - time.monotonic(),
                    self.asked.rounds, lambda: self.stop.times > 0,
                )  # fmt: skip
        finally:
            journal.close()
        return self._report(found)

    def _report(self, found: Tuned) -> Report:
        return Report(
            tuned=found, space=self.knobs.space, untried=self.knobs.untried, objective=self.asked.objective,
            offered=self.offered, arguments=self.arguments, command=self.launches.at(found.search.best).command,
        )  # fmt: skip

    def foresee(self, step: Next, trials: Sequence[Trial]) -> Foreseen:
        return self.launches.foresee(step, trials)

    def start(self, step: Next, seen: Foreseen, number: int, more: More, left_s: float) -> Measured:
        self.tell(step_line(number, step, self.knobs.space, seen.forecast))
        return Trying(self.launches.launch(step), self.place, self._task, self.tell).run(more, self.stop, left_s)


def _told(report: Report, tuning: Tuning, journal: Path, output: Path | None, html: Path | None, *, json: bool) -> int:
    """Print, write the plan and the page; the exit code. EngineError where the plan itself did not serve."""
    found = report.tuned
    file = None
    if found.ending in ("settled", "budget") and any(one.kind == "measured" for one in found.trials):
        file = write_plan(report, tuning.launch, tuning.launches, output)
    print(as_json(report, lang()) if json else as_text(report, lang()))
    if html is not None:
        from trimtab.cli import pages
        from trimtab.cli.format.tune_page import page

        pages.write(html, page(report), lang())
    for said in (msg("trials: {file}", file=journal), msg("tuned plan: {file}", file=file) if file else None):
        if said is not None:
            _say(said)
    if found.ending == "failed":
        cause = next((one.cause.message() for one in reversed(found.trials) if one.cause), msg("no cause is known"))
        raise EngineError(
            msg("the plan itself could not be measured: {why}", why=cause),
            hint=msg("Mend that first: trimtab up {model}. The trial is not repeated: --journal FILE begins anew.",
                     model=tuning.launch.served_model),
        )  # fmt: skip
    if found.ending == "interrupted":
        return 130
    return 0 if file is not None and met(report) else 1


def _say(line: Message) -> None:
    print(line.text(lang()), file=sys.stderr, flush=True)
