"""`trimtab lint`: judge launch commands in files, folders, standard input or an argument, without starting anything."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from json import loads as json_decode
from pathlib import Path

import typer

from trimtab.cli import options
from trimtab.cli.format import github, markdown, sarif, text
from trimtab.cli.format import json as json_format
from trimtab.cli.gpus import gpus_named
from trimtab.cli.models import find_model
from trimtab.cli.notes import Notes
from trimtab.cli.settings import lang
from trimtab.cli.subject import PLAN_SCHEMA
from trimtab.engine.command import LaunchCommand, Problem
from trimtab.errors import HostError, ModelError, UsageError
from trimtab.facts.model import ModelFacts
from trimtab.facts.probe.hub import is_model_id
from trimtab.messages import msg
from trimtab.rules import registry
from trimtab.rules.lint import Linted, LintFacts, lint
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, Selection, fix

LARGEST_BYTES = 4 << 20
"""No launch file is larger; what is, is named and left alone."""
ENDINGS = (".sh", ".bash", ".yaml", ".yml", ".service", ".md", ".env", ".txt", ".json")
NAMES = ("Dockerfile", "Containerfile")


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
    vllm: options.VllmVersion = None,
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
        gpus=gpus_named(gpu) if gpu else None,
        model_of=lambda command: _model(_named(command), model_config),
    )
    selection = Selection(_codes(select), _codes(ignore)).checked(registry.rules(Subject.COMMAND))
    threshold = _severity(fail_on)
    total, version = Report(), vllm
    for source in _sources(subjects or [], ctx.obj):
        linted = source.lint(facts, selection)
        version = linted.vllm
        if apply or diff:
            linted = source.mend(facts, selection, linted, unsafe=unsafe, write=apply)
        total += linted.report
        if not linted.commands and not linted.problems:
            print(msg("{name}: no launch command found", name=source.name).text(lang()), file=sys.stderr)
        for problem in linted.problems:
            print(_problem(problem, source.name), file=sys.stderr)
        if linted.problems and not linted.commands:
            raise UsageError(
                msg("{name}: nothing could be read", name=source.name), hint=msg("Mend the text, then lint it again.")
            )
    print(_written(total, OutputFormat.json if json else _format(output), version), end="")
    worst = total.worst()
    return 1 if worst is not None and worst.rank <= threshold.rank else 0


class _Source:
    """One text to lint, and where it came from; `file` None when it stood on the command line."""

    def __init__(self, name: str, data: bytes, file: Path | None) -> None:
        self.name, self.data, self.file = name, data, file

    def lint(self, facts: LintFacts, selection: Selection) -> Linted:
        return lint(self.data, filename=self.name, facts=facts, selection=selection)

    def mend(self, facts: LintFacts, selection: Selection, linted: Linted, *, unsafe: bool, write: bool) -> Linted:
        """Apply fixes: written to the file, else shown as a diff. What is left is the new report."""
        before = self.data.decode("utf-8", "surrogateescape")

        def again(words: str) -> Report:
            data = words.encode("utf-8", "surrogateescape")
            return lint(data, filename=self.name, facts=facts, selection=selection).report

        after, _ = fix(before, again, unsafe=unsafe)
        if after == before:
            return linted
        if not write:
            sys.stdout.writelines(_diff(before, after, self.name))
            return linted
        data = after.encode("utf-8", "surrogateescape")
        if self.file is None:
            print(after, end="" if after.endswith("\n") else "\n")
        else:
            _write(self.file, data)
        return lint(data, filename=self.name, facts=facts, selection=selection)


def _sources(subjects: list[str], rest: list[str] | None) -> Iterator[_Source]:
    """Files, folders (searched for launch files), `-`, a command in one argument, or the words after `--`."""
    if not subjects and not rest:
        raise UsageError(
            msg("nothing to lint"),
            hint=msg("Name a file or folder, - for standard input, or a command: trimtab lint -- vllm serve MODEL ..."),
        )
    if rest and not subjects:
        yield _Source("-", shlex.join(rest).encode(), None)
    for subject in subjects:
        path = Path(subject)
        if (path / "config.json").is_file() or (not path.exists() and "/" in subject and is_model_id(subject)):
            words = ["vllm", "serve", subject, *(rest or [])]
            yield _Source("-", shlex.join(words).encode(), None)
        elif path.suffix == ".json" and (planned := _planned(path)):
            yield _Source(subject, planned, None)
        elif subject == "-":
            yield _Source("-", _bounded(sys.stdin.buffer.read(LARGEST_BYTES + 1), "-"), None)
        elif path.is_dir():
            for file in sorted(p for p in path.rglob("*") if p.is_file() and _is_launch_file(p)):
                yield _Source(str(file), _read(file), file)
        elif path.is_file():
            yield _Source(subject, _read(path), path)
        elif " " in subject:
            yield _Source("-", subject.encode("utf-8", "surrogateescape"), None)
        else:
            raise UsageError(
                msg("there is no file {name}", name=subject),
                hint=msg("Check the path, or lint a command: trimtab lint -- vllm serve MODEL ..."),
            )


def _planned(path: Path) -> bytes | None:
    """The command of a plan file (schema `trimtab.plan/1`); None when the file is no plan."""
    try:
        data = json_decode(_read(path)) if path.is_file() else None
    except ValueError:
        return None
    if not isinstance(data, dict) or data.get("schema") != PLAN_SCHEMA or not isinstance(data.get("command"), list):
        return None
    return shlex.join(str(word) for word in data["command"]).encode()


def _is_launch_file(path: Path) -> bool:
    hidden = any(part.startswith(".") and part not in (".", "..") for part in path.parts)
    return not hidden and (path.suffix in ENDINGS or path.name.startswith(NAMES))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return _bounded(stream.read(LARGEST_BYTES + 1), str(path))
    except OSError as error:
        raise HostError(msg("{file} cannot be read: {reason}", file=path, reason=error.strerror)) from error


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > LARGEST_BYTES:
        raise UsageError(
            msg("{name} is larger than {most} MiB: no launch file is", name=name, most=LARGEST_BYTES >> 20),
            hint=msg("Name the file that holds the launch command."),
        )
    return data


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise HostError(msg("{file} cannot be written: {reason}", file=file, reason=error.strerror)) from error


def _named(command: LaunchCommand) -> str | None:
    return command.get("model") or (command.model.text if command.model else None)


@lru_cache(maxsize=512)
def _model(named: str | None, config: Path | None) -> ModelFacts | None:
    """Facts of a command's model; None where they cannot be had (the rules then say that they need them)."""
    if config is None and not named:
        return None
    try:
        return find_model(named, config, Notes(lang()), look_up=False).facts
    except (ModelError, UsageError, HostError):
        if config is not None:
            raise
        return None


def _diff(before: str, after: str, name: str) -> Iterator[str]:
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return difflib.unified_diff(*lines, fromfile=name, tofile=name)


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
            return text.findings(report, lang(), colour=sys.stdout.isatty())
        case OutputFormat.json:
            return json_format.findings(report, lang(), vllm)
        case OutputFormat.sarif:
            return sarif.findings(report, lang())
        case OutputFormat.github:
            return github.findings(report, lang())
        case OutputFormat.markdown:
            return markdown.findings(report, lang())
