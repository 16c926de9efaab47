"""The Python API: what the verbs answer, as values. It prints nothing, starts nothing and asks no vLLM of this host.

Two conventions hold for every function. A `str` where a text is wanted is the text itself, a `Path` the file that holds
it. What goes wrong is raised as a `TrimtabError`: `str(error)` is the sentence, `error.hint` the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trimtab.bench.verify import Verification
    from trimtab.engine.command import LaunchCommand
    from trimtab.engine.logs import Log
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.probe.transfer import Progress
    from trimtab.messages import Message
    from trimtab.plan.memory.budget import Budget
    from trimtab.plan.memory.card import Card
    from trimtab.plan.outcome import Plan
    from trimtab.plan.wish import Prefer
    from trimtab.rules.doctor import Diagnosis
    from trimtab.rules.lint import Linted


def plan(
    model: str | Path,
    *,
    gpu: str = "auto",
    context: int | None = None,
    concurrency: int | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    prefer: Prefer = "balanced",
    flags: Sequence[str] = (),
    vllm: str | None = None,
    model_config: Path | None = None,
    look_up: bool = True,
) -> Plan:
    """The launch that serves the wish, with the memory behind it and a reason for every flag.

    model: a hub id ("Qwen/Qwen2.5-7B-Instruct") or a directory; `model_config` (a config.json or its directory) tells
        of one that is not here.
    gpu: "8xA10", "H200", "24GiB", "2xsm_86 24GiB", "cpu", or "auto": this host's cards less what others hold of them.
    context, input_tokens, output_tokens: tokens per request. concurrency: requests at once. None: the planner's choice.
    prefer: "balanced", "latency" or "throughput", by which splits of the cards are chosen.
    flags: vLLM's own, as words (["--dtype", "half"]); they are never changed.
    vllm: the version to plan for; None: the newest that Trimtab knows, or another where the model needs one.
    look_up: whether the hub may be asked for a model that neither this disk nor the catalogue knows.

    `Plan.command.command_line()` is the launch, `.fits` and `.verdict` the outcome, `.budget` memory in GiB, `.holds`
    requests at once, `.why` the reasons, `.alternatives` what else would do. A wish that nothing fits is a Plan too.

    UsageError: a number, card or flag that makes no sense. ModelError: a model that is not there or not known.
    HostError: "auto" on a host without GPUs. UpstreamError: the hub does not answer.
    """
    from trimtab.cli.models import find_model, require_known
    from trimtab.plan.memory.versions import NEWEST
    from trimtab.plan.pinned import flags_of, named, pinned_of
    from trimtab.plan.planner import Task, Wish
    from trimtab.plan.planner import plan as planned
    from trimtab.plan.wish import read_preference

    wish = Wish(context, concurrency, input_tokens, output_tokens, read_preference(prefer))
    found = require_known(find_model(str(model), model_config, _Silent(), look_up=look_up))
    names, pinned = named(pinned_of(flags_of(flags)), found.served_name)
    task = Task(
        model_path=found.ref,
        served_name=names[0],
        aliases=names[1:],
        model=found.facts,
        cards=_cards(gpu),
        version=vllm or str(NEWEST),
        pinned=pinned,
        remote_code=found.remote_code,
        any_vllm=vllm is None,
    )
    return planned(task, wish)


def budget(
    command: str | Path | Sequence[str],
    *,
    gpu: str = "auto",
    vllm: str | None = None,
    model_config: Path | None = None,
    look_up: bool = True,
) -> Budget:
    """What one launch command needs of each card, and whether it starts.

    command: words of an argv, a text holding one launch (a shell line, a compose file), or the file that holds it.
    gpu: as for `plan`; a bare name ("A10") stands for as many cards as the command asks for.
    vllm: None: the image's tag, else the newest that Trimtab knows. model_config, look_up: as for `plan`.

    `Budget.verdict` is "fits" or what it fails at, `.reasons` says why with numbers, `.ranks` holds each rank's
    weights, KV cache and headroom as `Derived` values in GiB (value, formula, inputs, source), `.tightest` the rank
    with the least, `.capacity` tokens and requests, `.assumptions` what nothing told.

    UsageError: no launch or several, a flag out of bounds, too few cards. ModelError, HostError, UpstreamError: as
    for `plan`.
    """
    from trimtab.cli.drafts import with_draft_of
    from trimtab.cli.gpus import gpus_named
    from trimtab.cli.models import find_model
    from trimtab.cli.reckoning import reckoned
    from trimtab.plan.memory.versions import NEWEST

    launch = _one(command)
    named = launch.get("model") or (launch.model.text if launch.model else None)
    facts = find_model(named, model_config, _Silent(), look_up=look_up, described=True).facts
    facts = with_draft_of(launch, facts, _Silent(), look_up=look_up)
    version = vllm or (launch.container.version if launch.container else None) or str(NEWEST)
    return reckoned(launch, facts, gpus_named(gpu), version, spec=gpu)


def lint(
    command: str | Path | Sequence[str],
    *,
    gpu: str | None = None,
    vllm: str | None = None,
    model_config: Path | None = None,
    host_gib: float | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Linted:
    """What is wrong with every launch command in a text, without starting anything and without the network.

    command: words of an argv, a text, or a file (script, compose file, manifest, unit, Dockerfile, Markdown).
    gpu, vllm, model_config, host_gib (GiB of the host's memory): facts; rules that lack one say so and judge nothing.
    select, ignore: codes ("CMD101"), prefixes ("CMD0") or names of rules; ignoring wins.

    `Linted.report.findings` are worst first within a file: each has `rule.code`, `severity`, `message`, `line`,
    `column` (from 1) and `fix`. `.report.not_judged` names rules with the fact that they lack, `.problems` what could
    not be read, `.commands` the launches.

    UsageError: a selection or a card that names nothing. HostError: a file that cannot be read.
    """
    from trimtab.cli.known import known_model
    from trimtab.rules import registry
    from trimtab.rules.lint import LintFacts
    from trimtab.rules.lint import lint as judged
    from trimtab.rules.rule import Subject
    from trimtab.rules.runner import Selection

    text, name = _text(command)
    facts = LintFacts(
        vllm=vllm, gpus=_gpus(gpu), host_gib=host_gib, model_of=lambda launch: known_model(launch, model_config)
    )
    selection = Selection(tuple(select), tuple(ignore)).checked(registry.rules(Subject.COMMAND))
    return judged(text, filename=name, facts=facts, selection=selection)


def diagnose(
    log: str | Path, *, exit_status: int | None = None, vllm: str | None = None, gpu: str | None = None
) -> Diagnosis:
    """Why a vLLM server failed, out of its log: the cause and not the last line.

    log: the text, or its file (gzip is unpacked).
    exit_status: as `subprocess` tells it (-9: killed by signal 9). vllm, gpu: what the log itself does not tell.

    `Diagnosis.cause` is the likeliest finding, None where the log is healthy; `.report.findings` are all of them,
    ranked, each with `rule.name`, `message`, `evidence` (lines of the log), `confidence` (0 to 1) and a `fix` of the
    launch command where there is one.

    UsageError: the file is no text. HostError: it cannot be read.
    """
    from trimtab.cli.diagnosis import model_of
    from trimtab.rules.doctor import DoctorFacts
    from trimtab.rules.doctor import diagnose as judged

    return judged(_log(log, exit_status), DoctorFacts(vllm=vllm, gpus=_gpus(gpu), model_of=model_of))


def verify(
    url: str,
    *,
    key: str | None = None,
    model: str | None = None,
    depth: Literal["quick", "full"] = "quick",
    only: Sequence[str] = (),
    context: int | None = None,
    concurrency: int = 8,
    log: Path | None = None,
    first_token_s: float = 300.0,
    budget_s: float | None = None,
) -> Verification:
    """Judge a running OpenAI-compatible server by asking it; blocks until done, inside a running event loop too.

    url: with or without /v1. key: its API key. model: None: the first that it serves.
    depth, only: the four quick criteria, all of them, or those named. context: tokens that one request needs (None:
    what the server states). concurrency: requests at once. log: the server's log, on this host.
    first_token_s, budget_s: seconds for one first token, and in all.

    `Verification.passed` is True, False, or None where something could not be measured; `.criteria` holds each with
    `name`, `verdict` and `evidence`, `.capacity` what the server says of its memory, `.seconds` how long it took. In
    the main thread Ctrl-C ends it with what was judged until then (`.interrupted`).

    UsageError: a criterion or number that makes no sense. UpstreamError: no server to judge, or one that refuses.
    """
    import asyncio

    from trimtab.bench.client import Timeouts
    from trimtab.bench.endpoint import Target
    from trimtab.bench.serverlog import LogSource
    from trimtab.bench.verify import Wish, chosen, verify_by

    wish = Wish(
        criteria=chosen(only, depth),
        context=context,
        concurrency=concurrency,
        log=None if log is None else LogSource(log),
        timeouts=Timeouts(first_s=first_token_s),
        budget_s=budget_s,
    )
    target = Target(url, key, model)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return verify_by(target, wish)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as apart:  # a notebook's loop runs already, and asyncio has one a thread
        return apart.submit(verify_by, target, wish).result()


class _Silent:
    """A TransferObserver for whom a download says nothing."""

    def moved(self, progress: Progress) -> None:
        """Nobody looks."""

    def noted(self, note: Message) -> None:
        """Nobody reads."""


def _cards(gpu: str) -> tuple[Card, ...]:
    from trimtab.cli.gpus import gpus_named, of_this_host, with_taken
    from trimtab.facts.probe.gpus import read_gpus
    from trimtab.plan.memory.card import cards_of

    if gpu.strip().lower() != "auto":
        return cards_of(gpus_named(gpu))
    here = read_gpus()
    return with_taken(cards_of(of_this_host(here)), here.cards)


def _gpus(gpu: str | None) -> GpuSet | None:
    if gpu is None:
        return None
    from trimtab.cli.gpus import gpus_named

    return gpus_named(gpu, memory_needed=False)


def _text(command: str | Path | Sequence[str]) -> tuple[str | bytes, str | None]:
    """A text, and the name of the file that it is from."""
    if isinstance(command, str):
        return command, None
    if not isinstance(command, Path):
        import shlex

        return shlex.join(command), None
    from trimtab.errors import HostError
    from trimtab.messages import msg

    try:
        return command.read_bytes(), command.name
    except OSError as error:
        raise HostError(
            msg("cannot read {file}: {reason}", file=command, reason=error.strerror or str(error)),
            hint=msg("Check the file's permissions."),
        ) from error


def _one(command: str | Path | Sequence[str]) -> LaunchCommand:
    """The one launch of a text. UsageError: none, or several."""
    from trimtab.engine.command import read_commands
    from trimtab.errors import UsageError
    from trimtab.messages import msg

    text, name = _text(command)
    found = read_commands(text, name).commands
    if len(found) != 1:
        raise UsageError(
            msg("{n} launch commands of vLLM stand in the text; one is needed", n=len(found)),
            hint=msg("A launch command is vllm serve MODEL …, or docker run … vllm/vllm-openai …"),
        )
    return found[0]


def _log(log: str | Path, exit_status: int | None) -> Log:
    if isinstance(log, Path):
        from trimtab.cli.diagnosis import read_file

        return read_file(log, exit_status)
    from trimtab.engine.logs import read_log

    return read_log((log.encode(),), exit_status)
