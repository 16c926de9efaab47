"""What a verb works on: SUBJECT and the words after `--`, the same for `up`, `lint`, `budget` and `tune`.

A SUBJECT is a model directory, a model id of the hub, a file holding launch commands (`FILE:LINE` picks one, `-` is
standard input), or a plan file; without one, the words after `--` are the launch command. With one they are flags that
override the plan and count as pinned.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.paths import path_named
from trimtab.cli.plan_file import is_config, plan_in
from trimtab.engine.command import Arity, FlagUse, Form, LaunchCommand, Problem, read_commands
from trimtab.errors import HostError, ModelError, UsageError
from trimtab.facts.probe.hub_settings import Hub, id_of_page, is_model_id
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.facts.probe.transfer import TransferObserver

COMMAND_FILE_BYTES = 4 << 20
_FILE_ENDINGS = (".sh", ".yaml", ".yml", ".json", ".toml", ".service", ".md", ".txt", ".env")
_SUBJECTS = msg("Name a model directory, a model id, a file holding a launch command or a plan; or: -- vllm serve …")
_CONTAINERS = {
    Form.DOCKER: msg("a docker run command"),
    Form.COMPOSE: msg("a service of a compose file"),
    Form.KUBERNETES: msg("a container of a Kubernetes manifest"),
    Form.DOCKERFILE: msg("the start command of a Dockerfile"),
}


class ModelSubject(msgspec.Struct, frozen=True):
    """A model: a directory of this machine, or an id of the hub; exactly one of the two is set."""

    directory: Path | None
    model_id: str | None
    pinned: tuple[FlagUse, ...] = ()

    @property
    def name(self) -> str:
        return self.model_id if self.model_id is not None else str(self.directory)


class CommandSubject(msgspec.Struct, frozen=True):
    """Launch commands (one at least) of a file, standard input or the command line; `origin` says which."""

    commands: tuple[LaunchCommand, ...]
    origin: str | Message
    problems: tuple[Problem, ...] = ()
    pinned: tuple[FlagUse, ...] = ()


class PlanSubject(msgspec.Struct, frozen=True):
    """A plan file as it lies there; its records are `plan`'s to read."""

    file: Path
    data: Mapping[str, Any]
    pinned: tuple[FlagUse, ...] = ()


Subject = ModelSubject | CommandSubject | PlanSubject


def resolve_subject(subject: str | None, rest: Sequence[str] | None, *, arity: Arity | None = None) -> Subject:
    """What the words of a command line name; looks at the disk, never at the hub.

    `rest` are the words after `--` (None without one). UsageError: nothing named, a file without a launch command, a
    plan of another schema, words after `--` that are no flags. ModelError: a path where nothing is.
    """
    if subject is None:
        return _from_words(rest, arity)
    if not subject.strip():
        raise UsageError(msg("SUBJECT is empty"), hint=_SUBJECTS)
    pinned = _pinned(rest or (), arity)
    path = path_named(subject)
    if subject == "-":
        return _commands_of(sys.stdin.buffer.read(COMMAND_FILE_BYTES + 1), msg("standard input"), "-", pinned, arity)
    if path is None:
        raise _nothing_there(subject)
    if path.is_dir():
        return ModelSubject(path, None, pinned)
    if path.exists():
        return _from_file(path, pinned, arity)
    name, _, line = subject.rpartition(":")
    if name and line.isdigit() and Path(name).expanduser().is_file():
        return _at_line(_from_file(Path(name).expanduser(), pinned, arity), int(line), subject)
    on_page = id_of_page(subject)
    if on_page is not None:
        return ModelSubject(None, on_page, pinned)
    if _is_path(subject) or not is_model_id(subject):
        raise _nothing_there(subject)
    return ModelSubject(None, subject, pinned)


def one_launch(subject: CommandSubject) -> LaunchCommand:
    """The one command that `up` can start. UsageError: several (listed with their lines), or a container."""
    command = _only(subject)
    if command.form in _CONTAINERS:
        raise UsageError(
            msg("{origin} is {what}: Trimtab starts vLLM on this host, outside any container",
                origin=subject.origin, what=_CONTAINERS[command.form]),
            hint=msg("Start it as before, or without the container: trimtab up -- {command}",
                     command=command.command_line()),
        )  # fmt: skip
    return command


def _only(subject: CommandSubject) -> LaunchCommand:
    if len(subject.commands) > 1:
        listed = "\n".join(f"  {_line(c)}: {c.command_line()}" for c in subject.commands)
        raise UsageError(
            msg("{file} holds {n} launch commands:\n{listed}", file=subject.origin, n=len(subject.commands),
                listed=listed),
            hint=msg("Name one: {file}:{line}", file=subject.origin, line=_line(subject.commands[0])),
        )  # fmt: skip
    return subject.commands[0]


def command_of(subject: Subject) -> LaunchCommand:
    """The one launch command that a subject stands for, with the pinned flags set; a container's is one too.

    UsageError where a file holds several.
    """
    match subject:
        case ModelSubject():
            command = LaunchCommand.from_argv(["vllm", "serve", subject.name])
        case CommandSubject():
            command = _only(subject)
        case PlanSubject():
            command = LaunchCommand.from_argv([str(w) for w in subject.data["command"]], subject.data.get("env") or {})
    return with_pinned(command, subject.pinned)


def with_pinned(command: LaunchCommand, pinned: Sequence[FlagUse]) -> LaunchCommand:
    """The command with these flags in place of its own uses of them."""
    for use in pinned:
        command = command.with_flag(f"no-{use.dotted}" if use.negated else use.dotted, use.value)
    return command


def model_directory(model: str, hub: Hub, observer: TransferObserver, *, whole: bool, revision: str = "main") -> Path:
    """The directory of a model named by path or id; from the hub, all of it (`whole`) or its JSON files alone.

    ModelError where neither holds; the hub's own errors are `facts.probe.hub.fetch`'s.
    """
    path = path_named(model)
    if path is None or path.exists() or _is_path(model):
        if path is None or not path.exists():
            raise _nothing_there(model)
        return path
    from trimtab.facts.probe.hub import fetch, fetch_config

    return (fetch if whole else fetch_config)(model, hub, observer, revision=revision)


def _from_words(rest: Sequence[str] | None, arity: Arity | None) -> CommandSubject:
    if not rest:
        raise UsageError(
            msg("nothing to work on: no SUBJECT, and no command after --"),
            hint=_SUBJECTS,
        )
    reading = read_commands(shlex.join(rest), None, arity)
    if not reading.commands and not rest[0].startswith("-"):
        raise _no_command(msg("what follows --"), reading.problems)
    commands = reading.commands or (LaunchCommand.from_argv(rest, None, arity),)
    return CommandSubject(commands, msg("the command after --"), reading.problems)


def _pinned(rest: Sequence[str], arity: Arity | None) -> tuple[FlagUse, ...]:
    if not rest:
        return ()
    if not rest[0].startswith("-"):
        raise UsageError(
            msg("after a SUBJECT only vLLM flags may follow --, not {word}", word=repr(rest[0])),
            hint=msg("Give flags such as --max-model-len 8192; or leave SUBJECT out and give the whole command."),
        )
    command = LaunchCommand.from_argv(rest, None, arity)
    odd = [value.text for value in (command.model, *command.strays) if value is not None]
    if odd:
        raise UsageError(
            msg("{word} after -- belongs to no flag", word=repr(odd[0])),
            hint=msg("The model is SUBJECT; after -- only flags and their values may follow."),
        )
    return command.flags


def _from_file(path: Path, pinned: tuple[FlagUse, ...], arity: Arity | None) -> Subject:
    if path.suffix in (".safetensors", ".bin", ".pt", ".gguf"):
        raise UsageError(
            msg("{file} is a weights file", file=path),
            hint=msg("Name the model's directory: {directory}", directory=path.absolute().parent),
        )
    try:
        with path.open("rb") as stream:
            data = stream.read(COMMAND_FILE_BYTES + 1)
    except OSError as error:
        raise HostError(
            msg("cannot read {file}: {reason}", file=path, reason=error.strerror or str(error)),
            hint=msg("Check the file's permissions."),
        ) from error
    plan = plan_in(path, data)
    if plan is not None:
        return PlanSubject(path, plan, pinned)
    if path.name == "config.json" and is_config(data):
        return ModelSubject(path.absolute().parent, None, pinned)
    return _commands_of(data, path, path.name, pinned, arity)


def _commands_of(
    data: bytes, origin: Path | Message, filename: str, pinned: tuple[FlagUse, ...], arity: Arity | None
) -> CommandSubject:
    if len(data) > COMMAND_FILE_BYTES or b"\0" in data:
        raise UsageError(
            msg("{file} is no text that could hold a launch command", file=origin),
            hint=msg("Name a shell script, a compose file, a manifest, a unit, a plan, or a model's directory."),
        )
    reading = read_commands(data, filename, arity)
    if not reading.commands:
        raise _no_command(origin, reading.problems)
    named = origin if isinstance(origin, Message) else str(origin)
    return CommandSubject(reading.commands, named, reading.problems, pinned)


def _no_command(origin: Path | Message, problems: Sequence[Problem]) -> UsageError:
    if problems:
        first = problems[0]
        said = msg("{file} holds no launch command that can be read; line {line}: {reason}",
                   file=origin, line=first.line, reason=first.message)  # fmt: skip
    else:
        said = msg("{file} holds no launch command of vLLM", file=origin)
    return UsageError(said, hint=msg("A launch command is vllm serve MODEL …, or docker run … vllm/vllm-openai …"))


def _at_line(subject: Subject, line: int, spelt: str) -> CommandSubject:
    if not isinstance(subject, CommandSubject):
        raise UsageError(
            msg("{subject} names a line, but the file holds no launch commands", subject=spelt),
            hint=msg("Name the file alone."),
        )
    chosen = tuple(c for c in subject.commands if _line(c) <= line <= _last_line(c))
    if not chosen:
        lines = ", ".join(str(_line(c)) for c in subject.commands)
        raise UsageError(
            msg("no launch command stands at {subject}", subject=spelt),
            hint=msg("They stand at line {lines}.", lines=lines),
        )
    return CommandSubject(chosen[:1], spelt, subject.problems, subject.pinned)


def _line(command: LaunchCommand) -> int:
    return command.source.line_column(command.span.start)[0]


def _last_line(command: LaunchCommand) -> int:
    return command.source.line_column(max(command.span.start, command.span.end - 1))[0]


def _is_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text in (".", "..") or text.endswith(_FILE_ENDINGS)


def _nothing_there(subject: str) -> ModelError:
    path = Path(subject).expanduser().absolute()
    above = next(p for p in path.parents if p.exists())
    if above == path.parent:
        return ModelError(
            msg("there is no file or directory {path}", path=subject),
            hint=msg("Check the path; a model on the hub is named OWNER/NAME."),
        )
    return ModelError(
        msg("there is no file or directory {path}", path=subject),
        hint=msg("What exists of it is {above}; a model on the hub is named OWNER/NAME.", above=above),
    )
