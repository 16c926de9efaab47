"""Diagnose a log: run the log rules over it and rank what they say. The one entry point of `trimtab doctor` on logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.engine.logs import Log, LogFacts
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, LogContext
from trimtab.rules.log.launch import cards_of, launch_of, ranks_of
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, Reported, Selection, run
from trimtab.rules.triggers import concerned

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.model import ModelFacts
    from trimtab.rules.command.context import CommandContext

FALLBACK = "failure-not-recognised"
"""The rule that speaks only where no other one named a cause."""


_LASTING = frozenset(
    {
        Cause.OOM_WEIGHTS, Cause.OOM_PROFILE, Cause.OOM_SAMPLER_WARMUP, Cause.OOM_GRAPH_CAPTURE, Cause.NO_KV_BLOCKS,
        Cause.KV_TOO_SMALL_FOR_CONTEXT, Cause.UTILIZATION_TOO_HIGH, Cause.MAMBA_BLOCKS_TOO_FEW,
        Cause.SWAP_SPACE_TOO_LARGE, Cause.PINNED_MEMORY_REFUSED, Cause.CACHE_NOT_WRITABLE, Cause.HEADS_NOT_DIVISIBLE,
        Cause.QUANT_BLOCKS_NOT_DIVISIBLE, Cause.RANKS_MORE_THAN_GPUS, Cause.CONTEXT_ABOVE_MODEL_LIMIT,
        Cause.BATCHED_TOKENS_TOO_FEW, Cause.CAPABILITY_TOO_LOW, Cause.DTYPE_NOT_ON_GPU,
        Cause.QUANT_CAPABILITY_TOO_LOW, Cause.KERNEL_IMAGE_MISSING, Cause.ATTENTION_BACKEND_UNSUPPORTED,
        Cause.DRIVER_TOO_OLD, Cause.SHARED_LIBRARY_MISSING, Cause.JIT_BUILD_FAILED, Cause.CONTAINER_WITHOUT_GPU,
        Cause.MIG_DEVICE, Cause.OPERATING_SYSTEM_UNSUPPORTED, Cause.EXTENSION_ABI_MISMATCH, Cause.DEPENDENCY_UNMET,
        Cause.TRANSFORMERS_TOO_OLD, Cause.TRANSFORMERS_TOO_NEW, Cause.MODEL_CLASS_IMPORT_FAILED,
        Cause.ENGINE_GENERATION, Cause.MODEL_NOT_IN_VLLM, Cause.TRUST_REMOTE_CODE_MISSING, Cause.MODEL_NOT_FOUND,
        Cause.MODEL_CONFIG_INVALID, Cause.MODEL_TASK_MISMATCH, Cause.WEIGHTS_LFS_POINTER, Cause.WEIGHTS_MISMATCH,
        Cause.QUANT_FORMAT_MISMATCH, Cause.QUANT_NOT_SHARDABLE, Cause.HUB_GATED, Cause.TOKENIZER_UNLOADABLE,
        Cause.GGUF_ARCHITECTURE_UNSUPPORTED, Cause.GGUF_FILE_UNUSABLE, Cause.LORA_RANK_TOO_HIGH,
        Cause.LORA_ADAPTER_MISSING, Cause.LORA_UNSUPPORTED, Cause.SPECULATIVE_UNSUPPORTED,
        Cause.SPECULATIVE_DRAFT_MISMATCH, Cause.FLAG_REMOVED, Cause.FLAG_UNKNOWN, Cause.FLAG_VALUE_INVALID,
        Cause.FLAGS_CONFLICT, Cause.MODEL_ARGUMENT_MISPLACED, Cause.ENTRYPOINT_WRONG, Cause.VARIABLE_INVALID,
        Cause.ADDRESS_NOT_BINDABLE, Cause.PARSER_UNKNOWN, Cause.CPU_INSTRUCTIONS_MISSING, Cause.CPU_BUILD_MIXED,
        Cause.CPU_BINDING_WRONG, Cause.CPU_KV_SPACE_WRONG,
    }
)  # fmt: skip
_PASSING = frozenset(
    {
        Cause.GPU_MEMORY_HELD_BY_OTHER, Cause.GPU_MEMORY_CHANGED_WHILE_PROFILING, Cause.OOM_RUNTIME, Cause.NCCL_TIMEOUT,
        Cause.RAY_RESOURCES_LACKING, Cause.RAY_WORKER_DIED, Cause.HUB_OFFLINE, Cause.HANG, Cause.KILLED_BY_KERNEL,
        Cause.PORT_TAKEN,
    }
)  # fmt: skip


def must_fail_again(cause: Cause) -> bool | None:
    """Whether the same command on the same host must fail at its start again; None where nobody can tell."""
    return True if cause in _LASTING else False if cause in _PASSING else None


class DoctorFacts(msgspec.Struct, frozen=True):
    """What is known beside the log: the launch command, vLLM's version, the cards, the model's facts."""

    command: LaunchCommand | None = None
    vllm: str | None = None
    gpus: GpuSet | None = None
    host_gib: float | None = None
    model_of: Callable[[LaunchCommand], ModelFacts | None] = lambda command: None


class Diagnosis(msgspec.Struct, frozen=True):
    """What the log's rules found, likeliest first, and the context in which they did."""

    report: Report
    context: LogContext

    @property
    def command(self) -> LaunchCommand | None:
        """The launch that findings' fixes edit."""
        return self.context.command

    @property
    def vllm(self) -> str | None:
        return self.context.version

    @property
    def cause(self) -> Reported | None:
        """The likeliest cause of a failure; None where the log is healthy."""
        errors = [f for f in self.report.findings if f.severity is Severity.ERROR]
        return errors[0] if errors else None


def diagnose(log: Log, facts: DoctorFacts | None = None, selection: Selection | None = None) -> Diagnosis:
    """Every log rule's word on `log`, likeliest first. Never raises for what the log holds."""
    known = facts or DoctorFacts()
    context = context_of_log(log, known)
    report = run(concerned(Subject.LOG, context.absent), context, selection)
    found = [_checked(f, context, guessed=known.gpus is None) for f in report.findings]
    found += _of_clients(log, found, context, selection)
    ranked = Report((*_ranked(found, log), *_linted(found, context)), report.not_judged)
    return Diagnosis(ranked, context)


def _of_clients(log: Log, found: list[Reported], context: LogContext, selection: Selection | None) -> list[Reported]:
    """What the log tells of refused requests, where no log rule named the same cause; a start that failed had none.

    A log rule that only thinks its cause possible does not tell a failed start from a client's own text.
    """
    known = [f for f in found if f.severity is Severity.ERROR and f.rule.name != FALLBACK]
    if not log.facts.served and any((f.confidence or 1.0) > POSSIBLE for f in known):
        return []
    from trimtab.rules.clients import judge_log

    named = {f.rule.cause for f in found}
    if any(f.rule.cause is not None and (f.confidence or 0.0) > POSSIBLE for f in found):
        named.add(Cause.ENGINE_DEAD_UNEXPLAINED)  # a cause that is told, if only as one request's, explains it
    report = judge_log(log, command_of=lambda: context.command, selection=selection)
    return [f for f in report.findings if f.rule.cause is None or f.rule.cause not in named]


def context_of_log(log: Log, known: DoctorFacts) -> LogContext:
    """The log with its launch: the command known from outside, else the one that the log prints."""
    return LogContext(log, lambda: known.command or launch_of(log.facts), partial(_launch, log.facts, known))


def _launch(told: LogFacts, known: DoctorFacts, command: LaunchCommand) -> CommandContext:
    from trimtab.rules.lint import LintFacts, context_of

    gpus = known.gpus or cards_of(told)
    facts = LintFacts(known.vllm or told.version, gpus, known.model_of, host_gib=known.host_gib)
    return context_of(command, facts)


def _checked(found: Reported, context: LogContext, *, guessed: bool) -> Reported:
    """The finding without its fix where the linter or the memory model finds an error in the command that it makes.

    Cards that were `guessed` from the log are as many as the command takes: how many there are is not known.
    """
    if found.fix is None or context.launch is None:
        return found
    launch = context.launch
    edited = launch.command.after(found.fix.edits)
    after = _errors(edited, launch, guessed=guessed) if edited else set[str]()
    if not after or after <= _errors(launch.command, launch, guessed=guessed):
        return found
    return msgspec.structs.replace(found, fix=None)


def _linted(findings: Sequence[Reported], context: LogContext) -> list[Reported]:
    """What the linter holds against the launch, where the log's own rules know no cause: as warnings, for a hint."""
    unknown = any(f.rule.name == FALLBACK for f in findings)
    if not unknown or any(_names_a_cause(f) for f in findings) or context.launch is None:
        return []
    launch = context.launch
    found = [f for f in _findings(launch.command, launch, launch.gpus) if f.severity is Severity.ERROR]
    return [
        msgspec.structs.replace(f, severity=Severity.WARNING, confidence=POSSIBLE, line=None, column=None)
        for f in found
    ]


def _names_a_cause(found: Reported) -> bool:
    return found.severity is Severity.ERROR and found.rule.name != FALLBACK


def _errors(command: LaunchCommand, launch: CommandContext, *, guessed: bool) -> set[str]:
    gpus = launch.gpus
    if guessed and gpus is not None:
        gpus = msgspec.structs.replace(gpus, members=((ranks_of(command), gpus.gpu),))
    return {f.rule.code for f in _findings(command, launch, gpus) if f.severity is Severity.ERROR}


def _findings(command: LaunchCommand, launch: CommandContext, gpus: GpuSet | None) -> tuple[Reported, ...]:
    from trimtab.rules.lint import LintFacts, judge

    facts = LintFacts(vllm=launch.version, gpus=gpus, host_gib=launch.host_gib, model_of=lambda command: launch.model)
    return judge(command, facts).findings


def _ranked(findings: Iterable[Reported], log: Log) -> list[Reported]:
    """The newest start's before an earlier one's, errors first, the surest first, then in the log's order.

    What an earlier start died of is no error where the newest one serves or has a cause of its own.
    """
    found = list(findings)
    named = [f for f in found if _names_a_cause(f)]
    if named:
        found = [f for f in found if f.rule.name != FALLBACK]
    begin = log.facts.begin_line
    if log.facts.served or any((f.line or 0) >= begin for f in named):
        found = [_earlier(f) if f.line is not None and f.line < begin else f for f in found]
    return sorted(found, key=lambda f: (f.severity.rank, -(f.confidence or 0.0), f.line or 0, f.rule.code))


def _earlier(found: Reported) -> Reported:
    severity = Severity.INFO if found.severity is Severity.ERROR else found.severity
    return msgspec.structs.replace(found, severity=severity)
