"""What `up` is about to start: from its subject to the words and the environment of one engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from trimtab.cli.engines import choose_engine, cpu_engine
from trimtab.cli.gpus import chosen_of, cpu_set, gpu_set
from trimtab.cli.models import find_model, require_known
from trimtab.cli.notes import Notes
from trimtab.cli.room import require_room
from trimtab.cli.settings import dirs, lang
from trimtab.cli.settled import settled
from trimtab.cli.subject import CommandSubject, ModelSubject, Subject, command_of, one_launch, with_pinned
from trimtab.cli.task import task_of
from trimtab.engine.command import FlagUse, LaunchCommand
from trimtab.errors import UsageError
from trimtab.facts.gpu import GpuSet
from trimtab.facts.probe.gpus import read_gpus
from trimtab.facts.probe.hub import fetch
from trimtab.facts.probe.hub_settings import hub_from_environment
from trimtab.facts.probe.transfer import TransferObserver
from trimtab.messages import msg
from trimtab.plan.memory.card import cards_of
from trimtab.plan.pinned import pinned_of
from trimtab.plan.planner import Plan, Task, Wish, plan
from trimtab.plan.wish import Prefer
from trimtab.supervisor.demo import prepare_demo_model
from trimtab.supervisor.environments import Engine, vllm_argv
from trimtab.supervisor.progress import Observer

DEMO_NAME = "smollm2-135m-instruct"
DEMO_CONTEXT = 4096
"""Half of what the model takes: a prompt of 8,192 tokens, which verification sends, takes a minute on a busy laptop."""
DEMO_PINNED: Mapping[str, object] = {"enforce_eager": True}
"""The demo starts without torch.compile: a first token in well under half the time, and nobody benchmarks a demo."""
DEMO_WHY = msg("ready after about 40 s on 2 cores instead of 146 s compiled, which would save 4 s on 256 tokens")
OURS = ("host", "port", "api-key")
"""Flags that `up` itself settles; the command's own --host and --port are read, a key goes into the environment."""


class Wanted(msgspec.Struct, frozen=True):
    """What the command line says of the launch beyond its subject."""

    engine: str | None = None
    engine_python: Path | None = None
    context: int | None = None
    concurrency: int | None = None
    devices: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    prefer: Prefer = "balanced"

    @property
    def wish(self) -> Wish:
        """For the planner."""
        return Wish(self.context, self.concurrency, self.input_tokens, self.output_tokens, self.prefer)


class Launch(msgspec.Struct, frozen=True):
    """One engine's start, but for host, port and key. `cards` is how many it takes; a command as given has no plan."""

    engine: Engine
    command: LaunchCommand
    served_model: str
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    plan: Plan | None = None
    cards: int = 0
    directory: Path = msgspec.field(default_factory=Path.cwd)  # where its process runs: paths in it may be relative

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the process, ready for --host and --port."""
        words = self.command
        for name in OURS:
            words = words.without_flag(name)
        return (*vllm_argv(self.engine), *words.argv()[1:])

    @property
    def context(self) -> int | None:
        """Tokens that one request may hold, where the command says so."""
        text = self.command.get("max-model-len")
        return int(text) if text and text.isdigit() else None


def demo_launch(progress: Observer, pinned: tuple[FlagUse, ...], wanted: Wanted) -> Launch:
    """The demo: the engine that was named, else the CPU engine; it and the small model are made if missing."""
    gpus = read_gpus().cards
    named = wanted.engine is not None or wanted.engine_python is not None
    engine = choose_engine(wanted.engine, wanted.engine_python, gpus) if named else cpu_engine(progress)
    on_cpu = engine.kind == "cpu" or not gpus
    directory = prepare_demo_model(dirs().cache, engine, progress)
    found = find_model(str(directory), None, Notes(lang()))
    flags = {**DEMO_PINNED, **pinned_of(pinned)}
    cards = cards_of(cpu_set() if on_cpu else gpu_set(gpus, wanted.devices))
    task = Task(str(directory), DEMO_NAME, found.facts, cards, engine.version, flags)
    launch = _planned(engine, task, Wish(wanted.context or DEMO_CONTEXT, wanted.concurrency))
    return launch if any(use.name == "enforce-eager" for use in pinned) else _with_demo_reason(launch)


def _with_demo_reason(launch: Launch) -> Launch:
    """The demo pins --enforce-eager, not the user: its reason says so."""
    assert launch.plan is not None
    why = tuple(
        msgspec.structs.replace(w, reason=DEMO_WHY, source="demo") if w.flag == "--enforce-eager" else w
        for w in launch.plan.why
    )
    return msgspec.structs.replace(launch, plan=msgspec.structs.replace(launch.plan, why=why))


def launch_of(subject: Subject, wanted: Wanted, watcher: TransferObserver) -> Launch:
    """The launch of a model, a command or a plan file on this host. Errors name what is missing."""
    command = _command(subject)
    gpus = read_gpus().cards
    engine = choose_engine(wanted.engine, wanted.engine_python, chosen_of(gpus, wanted.devices))
    on_cpu = engine.kind == "cpu" or not gpus
    cards = require_room(command, len(wanted.devices) or len(gpus), on_cpu=on_cpu)
    if isinstance(subject, ModelSubject):
        return _of_model(subject, engine, wanted, cpu_set() if on_cpu else gpu_set(gpus, wanted.devices), watcher)
    return _as_given(engine, command, cards)


def _command(subject: Subject) -> LaunchCommand:
    """The words that were given; of a model they are its name and the pinned flags, before any plan."""
    if not isinstance(subject, CommandSubject):
        return command_of(subject)
    command = settled(one_launch(subject), (*OURS[:2], *(use.name for use in subject.pinned)))
    return with_pinned(command, subject.pinned)


def _of_model(subject: ModelSubject, engine: Engine, wanted: Wanted, gpus: GpuSet, watcher: TransferObserver) -> Launch:
    found = require_known(find_model(subject.name, None, watcher))
    path = str(subject.directory) if subject.directory else str(fetch(subject.name, hub_from_environment(), watcher))
    task = task_of(found, cards_of(gpus), engine.version, subject.pinned, path=path)
    return _planned(engine, task, wanted.wish)


def _planned(engine: Engine, task: Task, wish: Wish) -> Launch:
    made = plan(task, wish)
    if made.refusal is not None:
        raise UsageError(made.refusal, hint=made.alternatives[0].what if made.alternatives else None)
    if not made.fits:
        raise UsageError(
            msg(
                "{model} does not fit: {reason}",
                model=task.served_name,
                reason=made.reasons[0] if made.reasons else msg("no split of it is possible"),
            ),
            hint=made.alternatives[0].what if made.alternatives else msg("trimtab plan shows the whole calculation."),
        )
    return Launch(
        engine=engine,
        command=made.command,
        served_model=task.served_name,
        env={**engine.env, **made.env},
        plan=made,
        cards=0 if task.on_cpu else made.budget.settings.cards_needed,
    )


def _as_given(engine: Engine, command: LaunchCommand, cards: int) -> Launch:
    if command.model is None:
        raise UsageError(msg("the launch command names no model"), hint=msg("Write it as: vllm serve MODEL --flags"))
    own = {name: use.value for name, use in command.env.items() if use.value is not None}
    names = (command.get("served-model-name") or "").split() or [command.model.text]
    return Launch(engine=engine, command=command, served_model=names[0], env={**engine.env, **own}, cards=cards)
