"""The journal of a tuning: its arguments, then one line a trial; only appended to, so that it goes on after any end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from trimtab.bench.tuning.objective import Objective, Round, score
from trimtab.bench.tuning.policy import Result
from trimtab.bench.tuning.space import Point, Value
from trimtab.errors import HostError, UsageError
from trimtab.messages import Message, msg

SCHEMA = "trimtab.tune/1"
T = TypeVar("T")


class Said(msgspec.Struct, frozen=True):
    """A message as it is written down: rendered in the language of whoever reads it later."""

    template: str
    values: dict[str, Any] = {}

    def message(self) -> Message:
        return Message(self.template, self.values)


def said(message: Message) -> Said:
    """Values that are messages themselves are kept in English."""
    plain = (str, int, float, bool, type(None))
    return Said(message.template, {k: v if isinstance(v, plain) else str(v) for k, v in message.values.items()})


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory model said of a launch before it was started."""

    verdict: str
    kv_tokens: int | None = None
    holds: float | None = None  # requests of the load's size at once
    free_gib: float | None = None  # at the peak
    needed_gib: float | None = None  # of it, for what comes on top
    utilization: float | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial. `cut`: the budget or Ctrl-C ended it, so that it counts for nothing."""

    number: int
    point: Point
    base: Point
    flag: str | None = None  # the one that differs from the best so far; None: the plan itself
    before: Value = None
    after: Value = None
    kind: Literal["measured", "skipped", "failed", "cut"]
    rounds: tuple[Round, ...] = ()
    forecast: Forecast | None = None
    cause: Said | None = None  # why it was skipped or failed
    started: str = ""
    ready_s: float | None = None
    took_s: float = 0.0
    command: tuple[str, ...] = ()

    def result(self, objective: Objective) -> Result | None:
        """For the search; None where it was cut."""
        if self.kind == "cut":
            return None
        return Result(self.point, self.kind, tuple(score(objective, one) for one in self.rounds))


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `arguments`: all that decides what is tried and how it is measured."""

    schema: str
    kind: Literal["run"] = "run"
    trimtab: str = ""
    started: str = ""
    arguments: dict[str, Any] = {}


class _Line(msgspec.Struct, frozen=True):
    kind: Literal["trial"]
    trial: Trial


def results(trials: Sequence[Trial], objective: Objective) -> list[Result]:
    """What the search reads."""
    return [found for one in trials if (found := one.result(objective)) is not None]


class Trials:
    """The journal open for writing; `trials` are those it held, and those appended since."""

    def __init__(self, file: Path, head: Head) -> None:
        self._file = file
        self.trials: list[Trial] = []
        torn = False
        try:
            if file.is_file() and file.stat().st_size:
                self.trials, torn = _read(file, head.arguments)
            file.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            if torn:
                os.write(self._fd, b"\n")
            if os.fstat(self._fd).st_size == 0:
                self._write(msgspec.json.encode(head))
        except OSError as error:
            raise self._refused(error) from error

    @property
    def counted(self) -> int:
        """Trials that count: those that were cut do not."""
        return sum(one.kind != "cut" for one in self.trials)

    def append(self, trial: Trial) -> None:
        """Write it down, on the disk when this returns. HostError where the disk takes it not; it is then not added."""
        try:
            self._write(msgspec.json.encode(_Line("trial", trial)))
        except OSError as error:
            raise self._refused(error) from error
        self.trials.append(trial)

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, line: bytes) -> None:
        left = line + b"\n"
        while left:
            left = left[os.write(self._fd, left) :]
        os.fsync(self._fd)

    def _refused(self, error: OSError) -> HostError:
        return HostError(
            msg("cannot write the trials to {file}: {reason}", file=self._file, reason=error.strerror or error),
            hint=msg(
                "What stands in it is kept: free the disk and run the same command, which goes on; or --journal FILE."
            ),
        )


def _read(file: Path, arguments: Mapping[str, Any]) -> tuple[list[Trial], bool]:
    """The trials, and whether the last line is torn. UsageError: of other arguments, or no journal of a tuning."""
    data = file.read_bytes()
    lines = data.split(b"\n")
    head = _decoded(lines[0], Head)
    if head is None or head.schema != SCHEMA:
        raise UsageError(
            msg("{file} is no journal of a tuning", file=file), hint=msg("Name another file with --journal.")
        )
    _require_same(file, head.arguments, msgspec.json.decode(msgspec.json.encode(arguments)))
    trials: list[Trial] = []
    for line in lines[1:]:
        if not line.strip():
            continue
        found = _decoded(line, _Line)
        if found is not None:  # a line that an end in the middle tore stays alone on its line
            trials.append(found.trial)
    return trials, not data.endswith(b"\n")


def _require_same(file: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    different = [name for name in (*now, *before) if before.get(name) != now.get(name)]
    if different:
        name = different[0]
        raise UsageError(
            msg("{file} holds trials with other arguments: {name} was {before}, now {now}", file=file, name=name,
                before=before.get(name), now=now.get(name)),
            hint=msg("Repeat the former arguments to go on, or begin anew with another --journal FILE."),
        )  # fmt: skip


def _decoded(line: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError:
        return None
