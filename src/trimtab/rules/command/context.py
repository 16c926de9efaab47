"""What a command rule may ask: the command, the vLLM version's flags, and facts that may not have been given."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.engine.command import FlagUse, LaunchCommand, Source, Span
from trimtab.engine.editing import remove_flag, set_flag
from trimtab.engine.flags import FlagTable
from trimtab.facts.gpu import GpuSet
from trimtab.facts.model import ModelFacts
from trimtab.rules.rule import Fact, FactMissing, Fix, Grade
from trimtab.rules.runner import release


@dataclass(frozen=True)
class CommandContext:
    """One launch command and the facts beside it; a `require_` method raises FactMissing where a fact is not there.

    `version` is the one the user named, the container image's tag, or the newest known (`version_assumed`).
    """

    command: LaunchCommand
    flags: FlagTable
    version: str
    version_assumed: bool = False
    model: ModelFacts | None = None
    gpus: GpuSet | None = None

    @property
    def source(self) -> Source | None:
        return self.command.source

    @property
    def extent(self) -> Span | None:
        return self.command.span

    def require_model(self) -> ModelFacts:
        """The model's facts; of a model whose architecture is not known, FactMissing."""
        if self.model is None or self.model.missing:
            raise FactMissing(Fact.MODEL)
        return self.model

    def require_gpus(self) -> GpuSet:
        if self.gpus is None:
            raise FactMissing(Fact.GPU)
        return self.gpus

    def at_least(self, version: str) -> bool:
        """Whether the vLLM in question is `version` or newer."""
        return release(self.version) >= release(version)

    def integer(self, name: str, default: int | None = None) -> int | None:
        """The flag's value as a whole number; `default` when absent, unknown or not a number (another rule says so)."""
        text = self.command.get(name)
        if text is None:
            return default
        digits = text.replace("_", "").strip()
        return int(digits) if digits.isdigit() else default

    def env(self, name: str) -> str | None:
        """The variable's value as the command sets it; None when it does not, or passes it through from outside."""
        use = self.command.env.get(name)
        return use.value if use else None

    def set_value(self, use: FlagUse, value: str, grade: Grade = Grade.SAFE) -> Fix:
        """The fix that writes `value` as the flag's value."""
        return Fix(tuple(set_flag(self.command, use.name, value)), grade)

    def remove(self, use: FlagUse, grade: Grade = Grade.SAFE) -> Fix:
        """The fix that takes the flag out."""
        return Fix(tuple(remove_flag(self.command, use.name)), grade)
