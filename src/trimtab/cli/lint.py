"""`trimtab lint`: judge launch commands in files, folders, standard input or an argument, without starting anything."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import typer

from trimtab.cli import options
from trimtab.cli.installed import installed_table
from trimtab.cli.known import known_model
from trimtab.cli.lint_sources import sources
from trimtab.cli.settings import lang
from trimtab.engine.command import Problem
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules import registry
from trimtab.rules.lint import LintFacts
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, Selection

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet


class OutputFormat(StrEnum):
    """How findings are written."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    markdown = "markdown"


def run(
    ctx: typer.Context,
    subjects: options.LintSubjects = None,
    gpu: options.Gpu = None,
    host_memory: options.HostMemory = None,
    vllm: options.VllmVersion = None,
    engine_python: options.EnginePython = None,
    model_config: options.ModelConfig = None,
    output: options.FindingsFormat = "text",
    json: options.AsJson = False,
    select: options.Select = "",
    ignore: options.Ignore = "",
    fail_on: options.FailOn = "warning",
    apply: options.ApplyFixes = False,
    unsafe: options.UnsafeFixes = False,
    diff: options.ShowDiff = False,
) -> int:
    """Judge launch commands. Exit code 0: nothing at or above --fail-on; 1: findings; 2: could not work."""
    facts = LintFacts(
        vllm=vllm,
        installed=cache(lambda version: installed_table(version, engine_python)),
        gpus=_gpus(gpu) if gpu else None,
        host_gib=_host_gib() if host_memory is None and gpu == "auto" else host_memory,
        model_of=lambda command: known_model(command, model_config),
    )
    selection = Selection(_codes(select), _codes(ignore)).checked(registry.rules(Subject.COMMAND))
    threshold, form = _severity(fail_on), OutputFormat.json if json else _format(output)
    total, version = Report(), vllm
    unread: list[str] = []
    notes: dict[str, None] = {}
    problems = False
    texts_out = diff
    for source in sources(subjects or [], ctx.obj):
        linted = source.lint(facts, selection)
        version = linted.vllm
        notes |= dict.fromkeys(note.text(lang()) for note in linted.notes)
        if not linted.commands and not linted.problems and not source.found:
            print(msg("{name}: no launch command found", name=source.name).text(lang()), file=sys.stderr)
        for problem in linted.problems:
            print(_problem(problem, source.name), file=sys.stderr)
        if linted.problems and not linted.commands:
            unread += [] if source.found or source.foreign else [source.name]
            continue
        problems |= bool(linted.problems)
        if apply or diff:
            texts_out |= source.file is None
            linted = source.mend(facts, selection, linted, unsafe=unsafe, write=not diff)
        total += linted.report
    for note in notes:
        print(note, file=sys.stderr)
    print(_written(total, form, version), end="", file=sys.stderr if texts_out else sys.stdout)
    if unread:
        raise UsageError(
            msg("{name}: nothing could be read", name=", ".join(unread)), hint=msg("Mend the text, then lint it again.")
        )
    worst = total.worst()
    return 1 if problems or (worst is not None and worst.rank <= threshold.rank) else 0


def _gpus(spec: str) -> GpuSet:
    from trimtab.cli.gpus import gpus_named

    return gpus_named(spec, memory_needed=False)


def _host_gib() -> float:
    """GiB of this host's memory: the launch is to run here where the GPUs are this host's."""
    from trimtab.facts.probe.host import read_host

    return read_host().memory_total_bytes / (1 << 30)


def _codes(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _severity(word: str) -> Severity:
    if word not in list(Severity):
        raise UsageError(
            msg("--fail-on takes error, warning or info, not {word}", word=word),
        )
    return Severity(word)


def _format(word: str) -> OutputFormat:
    if word not in list(OutputFormat):
        raise UsageError(
            msg("--format takes {known}, not {word}", known=", ".join(OutputFormat), word=word),
        )
    return OutputFormat(word)


def _problem(problem: Problem, name: str) -> str:
    return f"{name}:{problem.line}:{problem.column}: {problem.message.text(lang())}"


def _written(report: Report, output: OutputFormat, vllm: str | None) -> str:
    match output:
        case OutputFormat.text:
            from trimtab.cli.format import text

            return text.findings(report, lang(), colour=sys.stdout.isatty())
        case OutputFormat.json:
            from trimtab.cli.format import json as json_format

            return json_format.findings(report, lang(), vllm)
        case OutputFormat.sarif:
            from trimtab.cli.format import sarif

            return sarif.findings(report, lang())
        case OutputFormat.github:
            from trimtab.cli.format import github

            return github.findings(report, lang())
        case OutputFormat.markdown:
            from trimtab.cli.format import markdown

            return markdown.findings(report, lang())
