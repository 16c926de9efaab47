"""What the examination of a failed start is given and answers, and the bounds that a user sets to its steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from trimtab.engine.quantities import whole
from trimtab.errors import UsageError
from trimtab.facts.gpu import GpuSet
from trimtab.messages import msg
from trimtab.supervisor.launching import Diagnosis

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


def bound_of(text: str) -> Bound:
    """The bound in "max-model-len>=32768". UsageError when it is none."""
    found = _BOUND.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            msg("--keep takes a flag, >=, <= or =, and a value; not {text}", text=repr(text)),
            hint=msg("For example: --keep 'max-model-len>=32768'; quote it, for the shell's sake."),
        )
    bound = Bound(found["flag"].replace("_", "-"), found["how"], found["value"])
    if bound.how != "=":
        _number(bound.flag, bound.value)
    return bound


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


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(whole(flag, text))


def pinned_names(flags: Sequence[str]) -> tuple[str, ...]:
    """Names of flags as users write them: with or without dashes in front, underscores for dashes."""
    return tuple(flag.strip().lstrip("-").replace("_", "-") for flag in flags)
