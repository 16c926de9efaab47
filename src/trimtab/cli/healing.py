"""Why a start failed, and which one parameter a next start may change: the doctor's word within the user's bounds."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.cli.diagnosis import diagnosis_of
from trimtab.cli.examination import Examination, Patient
from trimtab.cli.format.doctor import finding_text
from trimtab.cli.format.json import findings_value
from trimtab.engine.command import LaunchCommand
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.doctor import must_fail_again
from trimtab.rules.runner import Reported
from trimtab.supervisor.happenings import Sign
from trimtab.supervisor.launching import Diagnosis, Failure, Step

OF_MEMORY = frozenset(
    {
        Cause.OOM_WEIGHTS, Cause.OOM_PROFILE, Cause.OOM_SAMPLER_WARMUP, Cause.OOM_GRAPH_CAPTURE, Cause.OOM_RUNTIME,
        Cause.NO_KV_BLOCKS, Cause.KV_TOO_SMALL_FOR_CONTEXT, Cause.UTILIZATION_TOO_HIGH, Cause.MAMBA_BLOCKS_TOO_FEW,
        Cause.ENCODER_CACHE_TOO_SMALL, Cause.OOM_HOST_RAM, Cause.SWAP_SPACE_TOO_LARGE, Cause.CPU_KV_SPACE_WRONG,
    }
)  # fmt: skip
"""Who else was on the machine decides too."""
_KILLED = frozenset({Cause.KILLED_BY_KERNEL, Cause.OOM_RUNTIME, Cause.HANG})
STEPPED = OF_MEMORY | {Cause.BATCHED_TOKENS_TOO_FEW, Cause.CONTEXT_ABOVE_MODEL_LIMIT}
MORE_CARDS = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")  # they are not ours to take
SHOWN = 3  # findings in the journal
SURE = 0.5  # a cause of less confidence is told, and decides nothing


def examine(failed: Failure, patient: Patient) -> Examination:
    """The doctor's word on one failed start, with a step where one is allowed."""
    command = LaunchCommand.from_argv(["vllm", *failed.argv[patient.program :]])
    status = None if failed.killed_for is not None else failed.status.returncode  # we killed it: that is no finding
    found = diagnosis_of(failed.log_file, command, exit_status=status, vllm=patient.vllm, gpus=patient.gpus)
    cause = found.cause
    if cause is None or cause.rule.cause is None:
        return Examination(_seen_by_the_watch(failed))
    sure = (cause.confidence or 0.0) >= SURE
    step, why_not = _step(cause, found.command, failed, patient) if sure else (None, None)
    told = Diagnosis(
        errors=failed.errors,
        cause=cause.message,
        permanent=_permanent(cause.rule.cause, served=failed.served) if sure else None,
        step=step if patient.heal == "on" else None,
        suggestion=step.why if step is not None and patient.heal == "suggest" else why_not,
        data={
            "cause": cause.rule.cause.value,
            "findings": findings_value(found.report, "en", found.vllm)["findings"][:SHOWN],
        },
    )
    return Examination(told, finding_text(cause, found.command, patient.lang))


def _seen_by_the_watch(failed: Failure) -> Diagnosis:
    """Where the log tells no cause: what the supervisor ended the engine for, and its name among the causes."""
    if failed.killed_for is None:
        return Diagnosis(errors=failed.errors)
    dead = failed.sign is Sign.DEAD
    seen = Cause.ENGINE_DEAD_UNEXPLAINED if dead else Cause.HANG if failed.served else Cause.START_TIMEOUT
    return Diagnosis(errors=failed.errors, cause=failed.killed_for, data={"cause": seen.value})


def _permanent(cause: Cause, *, served: bool) -> bool | None:
    """Whether the same command must fail again.

    What once served fails for want of memory only if somebody else took it; what never served and was killed is not
    known to do better next time.
    """
    unknown = OF_MEMORY if served else _KILLED
    return None if cause in unknown else must_fail_again(cause)


def _step(
    cause: Reported, command: LaunchCommand | None, failed: Failure, patient: Patient
) -> tuple[Step | None, Message | None]:
    """The one change that the finding's fix makes; or why it is not to be made."""
    if patient.heal == "off" or cause.fix is None or command is None or cause.rule.cause not in STEPPED:
        return None, None
    new = command.after(cause.fix.edits)
    changed = _changed(command, new) if new else {}
    if new is None or len(changed) != 1:
        return None, msg("its fix changes {count} parameters; a step changes one", count=len(changed))
    ((flag, (before, after)),) = changed.items()
    against = _against(flag, after, patient)
    if against is not None:
        return None, against
    argv = (*failed.argv[: patient.program], *new.argv()[1:])
    why = msg(
        "--{flag} {before} -> {after}: {cause}",
        flag=flag,
        before=before or msg("(vLLM's default)"),
        after=after or msg("(left out)"),
        cause=cause.message,
    )
    return Step(argv, flag, before, after, why), None


def _changed(old: LaunchCommand, new: LaunchCommand) -> Mapping[str, tuple[str | None, str | None]]:
    names = dict.fromkeys(use.dotted for use in (*old.flags, *new.flags))
    pairs = {name: (_told(old, name), _told(new, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _told(command: LaunchCommand, name: str) -> str | None:
    use = command.last(name)
    if use is None:
        return None
    return "off" if use.negated else use.value if use.value is not None else "on"


def _against(flag: str, after: str | None, patient: Patient) -> Message | None:
    """Which of the user's bounds the change would pass."""
    if flag in patient.pinned:
        return msg("--{flag} {after} would help, but the flag is pinned", flag=flag, after=after or "")
    if flag in MORE_CARDS:
        return msg("--{flag} {after} would help, but it takes more cards", flag=flag, after=after or "")
    for bound in patient.keep:
        if bound.flag == flag and not bound.holds(after):
            return msg("--{flag} {after} would help, but {bound} is to be kept", flag=flag, after=after, bound=bound)
    return None
