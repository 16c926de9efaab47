"""The doctor beside a supervised server: asks why a start failed, in a process of its own, and shows the answer.

What an examination (`healing.examine`) loads and reads does not stay in the supervisor.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli.settings import lang
from trimtab.engine.quantities import whole
from trimtab.errors import TrimtabError, UsageError
from trimtab.facts.gpu import GpuSet
from trimtab.messages import msg
from trimtab.supervisor.apart import call_apart
from trimtab.supervisor.environments import vllm_argv
from trimtab.supervisor.launching import Diagnosis, Failure

if TYPE_CHECKING:
    from trimtab.cli.keeping import Keep
    from trimtab.cli.launch import Launch

BOUND_S = 60.0
_BOUND = re.compile(r"(?:--)?(?P<flag>[a-z][\w.-]*?)\s*(?P<how>>=|<=|=)\s*(?P<value>\S+)")


class Bound(msgspec.Struct, frozen=True):
    """A value of a flag that no step may pass: `how` is >=, <= or =."""

    flag: str
    how: str
    value: str

    def holds(self, value: str | None) -> bool:
        if value is None:
            return False
        if self.how == "=":
            return value == self.value
        try:
            found, most = _number(self.flag, value), _number(self.flag, self.value)
        except UsageError:
            return False
        return found >= most if self.how == ">=" else found <= most

    def __str__(self) -> str:
        return f"{self.flag}{self.how}{self.value}"


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a launch beside its log. `heal`: off, suggest or on."""

    program: int  # words of its argv before `serve`
    vllm: str
    gpus: GpuSet | None = None
    lang: str = "en"
    heal: str = "off"
    keep: tuple[Bound, ...] = ()
    pinned: tuple[str, ...] = ()


class Examination(msgspec.Struct, frozen=True):
    """What was found, and the likeliest cause as `up` shows it: sentence, lines, the command to start with instead."""

    diagnosis: Diagnosis
    shown: str = ""


class Doctor:
    """Diagnoses every failure of one server; `last` is what to show of the newest one."""

    def __init__(self, launch: Launch, keep: Keep, devices: tuple[str, ...]) -> None:
        self._launch, self._keep, self._devices = launch, keep, devices
        self.last = ""

    def __call__(self, failure: Failure) -> Diagnosis:
        """The likeliest cause out of the server's log; the log's most telling lines where no rule knows it."""
        found = examined(failure, self._patient())
        self.last = found.shown
        return found.diagnosis

    def _patient(self) -> Patient:
        from trimtab.cli.gpus import cpu_set, gpu_set
        from trimtab.facts.probe.gpus import read_gpus

        cards = read_gpus().cards if self._devices else ()
        return Patient(
            program=len(vllm_argv(self._launch.engine)),
            vllm=self._launch.engine.version,
            gpus=gpu_set(cards, self._devices) if cards else cpu_set() if not self._devices else None,
            lang=lang(),
            heal=self._keep.heal,
            keep=tuple(bound_of(text) for text in self._keep.bounds),
            pinned=pinned_names(self._keep.pins),
        )


def show_diagnosis(shown: str) -> None:
    """The likeliest cause on stderr: its sentence, the lines that show it, the command to start with instead."""
    if shown:
        print(shown, file=sys.stderr, flush=True)


def bound_of(text: str) -> Bound:
    """The bound in "max-model-len>=32768". UsageError when it is none."""
    found = _BOUND.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            msg("--keep takes a flag, >=, <= or =, and a value; not {text}", text=repr(text)),
            hint=msg("For example: --keep 'max-model-len>=32768'; quote it, for the shell's sake."),
        )
    bound = Bound(found["flag"].replace("_", "-"), found["how"], found["value"])
    if bound.how != "=" and not isfinite(_number(bound.flag, bound.value)):
        raise UsageError(msg("--keep {bound}: {value} is no bound", bound=bound, value=bound.value))
    return bound


def require_agreement(bounds: Sequence[Bound]) -> None:
    """UsageError where no value of a flag would keep to all that is said of it."""
    for low in (bound for bound in bounds if bound.how == ">="):
        for high in (bound for bound in bounds if bound.how == "<=" and bound.flag == low.flag):
            if not high.holds(low.value):
                raise UsageError(msg("--keep {low} and --keep {high} leave no value", low=low, high=high))


def pinned_names(flags: Sequence[str]) -> tuple[str, ...]:
    """Names of flags as users write them: with or without dashes in front, underscores for dashes."""
    return tuple(flag.strip().lstrip("-").replace("_", "-") for flag in flags)


def examined(failed: Failure, patient: Patient) -> Examination:
    """What `healing.examine` says, asked in a child; without a cause when the child fails or takes too long."""
    try:
        answer = call_apart("trimtab.cli.healing:examine", failed, patient, bound_s=BOUND_S)
    except (ChildProcessError, TimeoutError, TrimtabError) as error:
        return _none(failed, f"{type(error).__name__}: {error}")
    assert isinstance(answer, Examination)
    return answer


def _none(failed: Failure, why: str) -> Examination:
    return Examination(Diagnosis(errors=failed.errors, data={"diagnosis_failed": why}))


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(whole(flag, text))
