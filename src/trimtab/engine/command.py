"""LaunchCommand: one start of a vLLM server as somebody wrote it, with spans; what the planner makes, the linter
reads and edits, the supervisor runs and the console shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from trimtab.engine.source import Edit, Problem, Source, Span, Word, apply_edits

__all__ = ["Arity", "Container", "Edit", "EnvUse", "FlagUse", "Form", "LaunchCommand", "Origin", "Problem", "Reading",
           "Source", "Span", "Value", "apply_edits", "read_commands"]  # fmt: skip

Arity = Callable[[str], str | None]
"""Canonical flag name -> how many words it takes, as argparse says it ("0", "1", "?", "*", "+"); None: unknown flag."""


class Form(StrEnum):
    """How the launch is written."""

    ARGV = "argv"
    SERVE = "serve"
    API_SERVER = "api_server"
    DOCKER = "docker"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"
    DOCKERFILE = "dockerfile"
    CONFIG = "config"


class Origin(StrEnum):
    """Where a flag was given."""

    ARGV = "argv"
    CONFIG_FILE = "config-file"
    ENV = "env"


class Value(msgspec.Struct, frozen=True):
    """A value and where it stands; `unknown` where it depends on something outside the file (text as spelt)."""

    text: str
    span: Span | None = None
    unknown: bool = False

    def __str__(self) -> str:
        return self.text


class EnvUse(msgspec.Struct, frozen=True):
    """One environment variable that the launch gets; value None: passed through from outside."""

    name: str
    value: str | None
    span: Span
    value_span: Span | None = None
    unknown: bool = False


class FlagUse(msgspec.Struct, frozen=True):
    """One use of a flag.

    `name` is the canonical long name with dashes ("max-model-len"), without "no-" for a negated one and without
    the dotted `path` ("compilation-config" with path ("mode",)). `value` joins several `values` with a space.
    """

    name: str
    spelling: str
    value: str | None
    span: Span
    spelling_span: Span
    value_span: Span | None = None
    negated: bool = False
    unknown: bool = False
    origin: Origin = Origin.ARGV
    path: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()

    @property
    def dotted(self) -> str:
        """The name with its path: "compilation-config.mode"."""
        return ".".join((self.name, *self.path))


class Container(msgspec.Struct, frozen=True):
    """What is known of the container around the launch; None: not said. `entrypoint` None: the image's own starts."""

    image: Value | None = None
    gpus: Value | None = None
    device_ids: tuple[str, ...] = ()
    gpu_count: int | None = None
    shm_size: Value | None = None
    ipc: Value | None = None
    runtime: Value | None = None
    network: Value | None = None
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    shm_mount: Value | None = None
    entrypoint: Value | None = None
    options_span: Span | None = None

    @property
    def tag(self) -> str | None:
        """The image's tag ("v0.6.3"), None without one."""
        name = self.image.text.partition("@")[0].rpartition("/")[2] if self.image else ""
        return name.partition(":")[2] or None

    @property
    def version(self) -> str | None:
        """The vLLM version that the tag names ("0.6.3" from "v0.6.3"), None where it names none."""
        if self.image is None or "vllm" not in self.image.text:
            return None
        found = re.match(r"(?:.*vllm[_-])?v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc)\d+)?)(?![\w.])", self.tag or "")
        return found.group(1) if found else None


class LaunchCommand(msgspec.Struct, frozen=True):
    """One launch. `flags` stand in the order written; `strays` are words that vLLM would not take or not know."""

    form: Form
    source: Source
    span: Span
    model: Value | None = None
    flags: tuple[FlagUse, ...] = ()
    env: Mapping[str, EnvUse] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    container: Container | None = None
    strays: tuple[Value, ...] = ()
    subcommand: str = "serve"
    words: tuple[Word, ...] = ()
    program: tuple[Word, ...] = ()

    def get(self, name: str) -> str | None:
        """The value that counts (the last) of a flag, or of a dotted one ("compilation-config.mode")."""
        last = self.last(name)
        return last.value if last else None

    def last(self, name: str) -> FlagUse | None:
        """The use that counts of a flag, None where it is not given."""
        uses = self.all(name)
        return uses[-1] if uses else None

    def all(self, name: str) -> tuple[FlagUse, ...]:
        """Every use of a flag, in order; dotted uses only under their dotted name."""
        return tuple(flag for flag in self.flags if flag.dotted == name)

    def has(self, name: str) -> bool:
        """Whether the flag is on: given and not negated."""
        last = self.last(name)
        return last is not None and not last.negated

    def argv(self) -> list[str]:
        """The launch as `vllm serve MODEL --flag value`, whatever form it was written in."""
        words = ["vllm", "serve", *([self.model.text] if self.model else [])]
        for flag in self.flags:
            if flag.name == "model" and not flag.path:
                continue
            spelt = f"--{'no-' if flag.negated else ''}{flag.dotted}"
            if flag.values and flag.values[0].startswith("-"):
                words.append(f"{spelt}={flag.value}")
            else:
                words += [spelt, *flag.values]
        return words

    def with_flag(self, name: str, value: str | None = None) -> LaunchCommand:
        """A launch with this flag set once, in place of every earlier use; without a value: the bare flag."""
        kept = self.without_flag(name).argv()
        return self._anew([*kept, f"--{name}", *([] if value is None else [value])])

    def without_flag(self, name: str) -> LaunchCommand:
        """A launch without any use of this flag (nor of its dotted ones)."""
        return self._anew(replace(self, flags=tuple(f for f in self.flags if name not in (f.name, f.dotted))).argv())

    def _anew(self, argv: list[str]) -> LaunchCommand:
        env = {name: use.value for name, use in self.env.items() if use.value is not None}
        return replace(LaunchCommand.from_argv(argv, env), container=self.container)

    @classmethod
    def from_argv(
        cls, argv: Sequence[str], env: Mapping[str, str] | None = None, arity: Arity | None = None
    ) -> LaunchCommand:
        """A launch from a process's words; words that do not begin a launch are arguments of `vllm serve`."""
        from trimtab.engine.reading import arguments

        return arguments.from_argv(argv, env or {}, arity)

    def after(self, edits: Sequence[Edit]) -> LaunchCommand | None:
        """The launch as these edits of its source leave it; None where they leave none."""
        text = apply_edits(self.source.text, edits)
        if self.form is not Form.ARGV:
            return next(iter(read_commands(text).commands), None)
        words = shlex.split(text)
        env = dict(word.split("=", 1) for word in words[: len(self.env)])
        return LaunchCommand.from_argv(words[len(env) :], env)

    def edit_set(self, name: str, value: str | None) -> list[Edit]:
        """Edits of the source that give the flag this value (None: the bare flag), or add it at the end.

        Empty where nothing changes, or where the place cannot hold it.
        """
        from trimtab.engine import editing

        return editing.set_flag(self, name, value)

    def edit_remove(self, name: str) -> list[Edit]:
        """Edits of the source that take out every use of the flag, with its line continuation."""
        from trimtab.engine import editing

        return editing.remove_flag(self, name)

    def edit_rename(self, name: str, new: str) -> list[Edit]:
        """Edits of the source that spell every use of the flag with the new long name."""
        from trimtab.engine import editing

        return editing.rename_flag(self, name, new)

    def command_line(self) -> str:
        """`argv()` as one line for a shell, with the environment in front."""
        prefix = [f"{n}={shlex.quote(u.value)}" for n, u in self.env.items() if u.value is not None]
        return " ".join([*prefix, shlex.join(self.argv())])


class Reading(msgspec.Struct, frozen=True):
    """What was found in a text: its launches in order, and what could not be read."""

    commands: tuple[LaunchCommand, ...] = ()
    problems: tuple[Problem, ...] = ()
    source: Source = msgspec.field(default_factory=lambda: Source(b""))


def read_commands(text: str | bytes, filename: str | None = None, arity: Arity | None = None) -> Reading:
    """Every vLLM launch in a text: shell, YAML, Dockerfile, systemd unit, Markdown or one command line.

    Which flags take values `arity` says, without it the tables of all versions together.
    Nothing is executed and the environment is never read; what cannot be read is a problem, never an exception.
    """
    from trimtab.engine.reading import dispatch

    return dispatch.read(text, filename, arity)
