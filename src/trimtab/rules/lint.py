"""Lint a text: read its launch commands and run the command rules over each. The one entry point of `trimtab lint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.engine.command import LaunchCommand, Problem, read_commands
from trimtab.engine.flags import FlagTable, arity, minors
from trimtab.engine.source import gap_start
from trimtab.messages import Message
from trimtab.rules import registry
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Subject
from trimtab.rules.runner import NotJudged, Report, Reported, Selection, run

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.model import ModelFacts


def no_model(command: LaunchCommand) -> ModelFacts | None:
    """When nobody gave the model's facts."""
    return None


def none_installed(version: str | None) -> FlagTable | None:
    """When no vLLM was looked for."""
    return None


class LintFacts(msgspec.Struct, frozen=True):
    """What is known beside the text. `vllm` None: the image's tag, else the installed vLLM, else the newest known.

    `installed` gives the table of the installed vLLM's own parser where that is the version asked for (None: any).
    """

    vllm: str | None = None
    gpus: GpuSet | None = None
    model_of: Callable[[LaunchCommand], ModelFacts | None] = no_model
    installed: Callable[[str | None], FlagTable | None] = none_installed
    host_gib: float | None = None


class Linted(msgspec.Struct, frozen=True):
    """The report over all commands of a text, what could not be read, and the vLLM version judged against.

    `notes`: of versions that have no flag table of their own, which one was read.
    """

    report: Report
    problems: tuple[Problem, ...]
    commands: tuple[LaunchCommand, ...]
    vllm: str
    notes: tuple[Message, ...] = ()


def lint(
    text: str | bytes,
    *,
    filename: str | None = None,
    facts: LintFacts | None = None,
    selection: Selection | None = None,
) -> Linted:
    """Every launch command in `text`, judged. Never raises for what the text holds."""
    known = facts or LintFacts()
    reading = read_commands(text, filename, arity)
    findings: list[Reported] = []
    unjudged: list[NotJudged] = []
    version = known.vllm or minors()[-1]
    notes: dict[str, Message] = {}
    rules = registry.rules(Subject.COMMAND)
    for command in reading.commands:
        context = context_of(command, known)
        version = context.version
        if context.flags.note is not None:
            notes[version] = context.flags.note
        report = run(rules, context, selection)
        findings += without_fixes(report.findings) if is_broken(command, reading.problems) else report.findings
        unjudged += report.not_judged
    # A variable that is exported once belongs to every command after it, and is told of once.
    once = Report(tuple(dict.fromkeys(findings)), tuple(dict.fromkeys(unjudged)))
    return Linted(once, reading.problems, reading.commands, version, tuple(notes.values()))


def judge(command: LaunchCommand, facts: LintFacts) -> Report:
    """One launch that was read already, judged."""
    return run(registry.rules(Subject.COMMAND), context_of(command, facts))


def is_broken(command: LaunchCommand, problems: Sequence[Problem]) -> bool:
    """Whether a part of the command itself cannot be read (a quote that is never closed)."""
    end, data = command.span.end, command.source.data
    return any(command.span.start <= p.span.start and gap_start(data, p.span.start) <= end for p in problems)


def without_fixes(findings: Sequence[Reported]) -> list[Reported]:
    """The findings, none of them to be mended: in a text half understood an edit may land in the wrong place."""
    return [msgspec.structs.replace(found, fix=None) for found in findings]


def context_of(command: LaunchCommand, known: LintFacts) -> CommandContext:
    """The command with its version settled: the user's word, the image's tag, the installed vLLM, the newest known."""
    container = command.container
    wanted = known.vllm or (container.version if container else None)
    installed = None if container and not wanted else known.installed(wanted)  # an image brings a vLLM of its own
    version = wanted or (installed.version if installed else minors()[-1])
    return CommandContext(
        command=command,
        flags=installed or FlagTable.for_version(version),
        version=version,
        version_assumed=wanted is None and installed is None,
        model=known.model_of(command),
        gpus=known.gpus,
        host_gib=known.host_gib,
    )
