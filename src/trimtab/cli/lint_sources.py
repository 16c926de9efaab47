"""What `trimtab lint` reads: files, folders, standard input, a command; each a text with its name, and fixes to it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from trimtab.cli.paths import path_named
from trimtab.cli.settings import lang
from trimtab.errors import HostError, TrimtabError, UsageError
from trimtab.messages import msg
from trimtab.rules.lint import Linted, LintFacts, lint
from trimtab.rules.runner import Report, Selection, fix

LARGEST_BYTES = 4 << 20
"""No launch file is larger; what is, is named and left alone."""
ENDINGS = (".sh", ".bash", ".yaml", ".yml", ".service", ".md", ".env", ".txt", ".json")
NAMES = ("Dockerfile", "Containerfile")


class LintSource(msgspec.Struct, frozen=True):
    """One text to lint, and where it came from; `file` None when it was piped in or stood on the command line.

    `found`: nobody named it, a folder did; it may be no launch file at all. `vllm`: the version it was made for.
    """

    name: str
    data: bytes
    file: Path | None = None
    found: bool = False
    vllm: str | None = None

    @property
    def foreign(self) -> bool:
        """Whether it is a text that does not speak of vLLM: that it cannot be read is then no fault."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return b"\0" not in self.data and b"vllm" not in self.data.lower()

    def lint(self, facts: LintFacts, selection: Selection) -> Linted:
        """What is wrong with its launch commands."""
        return lint(self.data, filename=self.name, facts=self._known(facts), selection=selection)

    def _known(self, facts: LintFacts) -> LintFacts:
        return replace(facts, vllm=facts.vllm or self.vllm)

    def mend(self, facts: LintFacts, selection: Selection, linted: Linted, *, unsafe: bool, write: bool) -> Linted:
        """Apply fixes: written to the file or to stdout, or without `write` only shown. Gives what is left to report.

        A text that cannot be read as UTF-8 is left as it is.
        """
        try:
            before = self.data.decode("utf-8")
        except UnicodeDecodeError:
            return linted
        facts = self._known(facts)

        def again(words: str) -> Report:
            return lint(words.encode(), filename=self.name, facts=facts, selection=selection).report

        after, _ = fix(before, again, unsafe=unsafe)
        if not write:
            sys.stdout.writelines(_diff(before, after, self.name))
            return linted
        if self.file is None:
            print(after, end="" if after.endswith("\n") else "\n")
        elif after != before:
            _write(self.file, after.encode())
        return lint(after.encode(), filename=self.name, facts=facts, selection=selection)


def sources(subjects: list[str], rest: list[str] | None) -> Iterator[LintSource]:
    """Files, folders (searched for launch files), plan files, `-`, models, a command in one argument, or after `--`."""
    if not subjects and not rest:
        raise UsageError(
            msg("nothing to lint"),
            hint=msg("Name a file or folder, - for standard input, or a command: trimtab lint -- vllm serve MODEL ..."),
        )
    if rest and not subjects:
        yield LintSource("-", shlex.join(rest).encode())
    for subject in subjects:
        path = path_named(subject)
        if path is None:
            yield _command_in(subject)
        elif _is_model(subject, path):
            yield LintSource("-", shlex.join(["vllm", "serve", subject, *(rest or [])]).encode())
        elif subject == "-":
            yield LintSource("-", _bounded(sys.stdin.buffer.read(LARGEST_BYTES + 1), "-"))
        elif path.is_dir():
            yield from _inside(path)
        elif path.is_file():
            data = _read(path)
            yield _planned(subject, path, data) or LintSource(subject, data, path)
        elif path.exists():
            yield LintSource(subject, _read(path))  # a pipe: trimtab lint <(generate)
        else:
            yield _command_in(subject)


def _command_in(subject: str) -> LintSource:
    """A command written as one argument; without a blank in it, it can only be a file that is not there."""
    if " " not in subject:
        raise UsageError(
            msg("there is no file {name}", name=subject),
            hint=msg("Check the path, or lint a command: trimtab lint -- vllm serve MODEL ..."),
        )
    return LintSource("-", subject.encode("utf-8", "surrogateescape"))


def _is_model(subject: str, path: Path) -> bool:
    if (path / "config.json").is_file():
        return True
    if path.exists() or "/" not in subject:
        return False
    from trimtab.facts.probe.hub_settings import is_model_id

    return is_model_id(subject)


def _planned(subject: str, path: Path, data: bytes) -> LintSource | None:
    """The command of a plan file (schema `trimtab.plan/1`); None when the file is no plan."""
    from trimtab.cli.plan_file import made_for, plan_in

    found = plan_in(path, data) if path.suffix == ".json" else None
    if found is None:
        return None
    variables = [f"{name}={shlex.quote(value)}" for name, value in (found.get("env") or {}).items()]
    words = " ".join([*variables, shlex.join(found["command"])])
    return LintSource(subject, words.encode(), vllm=made_for(found)[0])


def _inside(folder: Path) -> Iterator[LintSource]:
    """The launch files below a folder, hidden ones left out; one that cannot be read is named on stderr."""
    for file in sorted(folder.rglob("*")):
        inner = file.relative_to(folder)
        if any(part.startswith(".") for part in inner.parts) or not file.is_file():
            continue
        if file.suffix not in ENDINGS and not file.name.startswith(NAMES):
            continue
        try:
            data = _read(file)
        except TrimtabError as error:
            print(error.message.text(lang()), file=sys.stderr)
            continue
        if b"vllm" in data.lower():
            yield LintSource(str(file), data, file, found=True)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=_unwaiting) as stream:
            return _bounded(stream.read(LARGEST_BYTES + 1), str(path))
    except OSError as error:
        raise HostError(msg("{file} cannot be read: {reason}", file=path, reason=error.strerror)) from error


def _unwaiting(path: str, flags: int) -> int:
    """Open a pipe nobody writes to as an empty file, instead of waiting for a writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


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


def _diff(before: str, after: str, name: str) -> Iterator[str]:
    import difflib

    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for line in difflib.unified_diff(*lines, fromfile=name, tofile=name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
