"""What a command rule may ask: the command, the vLLM version's flags, and facts that may not have been given."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trimtab.engine.command import FlagUse, LaunchCommand, Source, Span
from trimtab.engine.editing import remove_flag, set_flag
from trimtab.engine.flags import FlagTable
from trimtab.engine.quantities import counted, whole
from trimtab.engine.supported import unregistered
from trimtab.errors import ModelError, UsageError
from trimtab.rules.rule import Fact, FactMissing, Fix, Grade
from trimtab.rules.runner import release

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.model import ModelFacts
    from trimtab.plan.memory.card import Card
    from trimtab.plan.memory.whatif import WhatIf


MOST_CARDS = 4096
"""Ranks of the largest launch that is reckoned with."""


class CommandContext(msgspec.Struct, frozen=True, dict=True):
    """One launch command and the facts beside it; a `require_` method raises FactMissing where a fact is not there.

    `version` is the one the user named, the container image's tag, or the newest known (`version_assumed`).
    """

    command: LaunchCommand
    flags: FlagTable
    version: str
    version_assumed: bool = False
    model: ModelFacts | None = None
    gpus: GpuSet | None = None
    host_gib: float | None = None

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

    def require_decoder(self) -> ModelFacts:
        """The model's facts, of whose decoder none is missing; its memory need not be known."""
        if self.model is None or not self.model.decoder_known:
            raise FactMissing(Fact.MODEL)
        return self.model

    def require_config(self) -> ModelFacts:
        """What the model's config says in so many words, whether or not its architecture is known."""
        if self.model is None:
            raise FactMissing(Fact.MODEL)
        return self.model

    def require_architecture(self) -> str:
        """The model's architecture: its config's, else what its name tells."""
        if self.model is not None:
            return self.model.architecture
        from trimtab.rules.command.names import architecture_named

        named = self.command.get("model") or (self.command.model.text if self.command.model else "")
        found = architecture_named(named) if named else None
        if found is None:
            raise FactMissing(Fact.MODEL)
        return found

    def require_gpus(self) -> GpuSet:
        if self.gpus is None:
            raise FactMissing(Fact.GPU)
        return self.gpus

    def require_gpu_count(self) -> int:
        """How many GPUs there are."""
        gpus = self.require_gpus()
        if not gpus.counted:
            raise FactMissing(Fact.GPU)
        return gpus.count

    def require_capability(self) -> tuple[int, int] | None:
        """The lowest compute capability of the GPUs; None when none of them is a CUDA device."""
        found = [g.cuda_capability for _, g in self.require_gpus().members]
        known = [c for c in found if c is not None]
        if not known and any(g.vendor == "" for _, g in self.require_gpus().members):
            raise FactMissing(Fact.GPU)
        return min(known) if known else None

    def require_host_gib(self) -> float:
        """GiB of the host's memory."""
        if self.host_gib is None:
            raise FactMissing(Fact.HOST)
        return self.host_gib

    @property
    def on_cpu(self) -> bool:
        """Whether the launch is known to be for vLLM's CPU back end."""
        return self.gpus is not None and self.gpus.gpu.vendor == "CPU"

    @cached_property
    def memory(self) -> WhatIf | None:
        """The memory model of this launch; None where other rules speak: its own flags contradict it, or no such model.

        A model that this vLLM does not register stops, or runs as other code than the memory model knows.
        """
        if unregistered(self.require_model().architecture, self.version):
            return None
        gpus = self.require_gpus()
        if self.on_cpu:
            return None
        if not gpus.memory_known:
            raise FactMissing(Fact.GPU)
        from trimtab.plan.memory import cards_of

        return self._case(cards_of(gpus))

    @property
    def shape(self) -> WhatIf | None:
        """The memory model; where none is known on cards of 40 GiB: for block sizes and the defaults of most cards."""
        from trimtab.plan.memory import Card

        known = self.gpus is not None and self.gpus.memory_known
        return self.memory if known else self._case((Card("", 40.0),))

    def _case(self, cards: tuple[Card, ...]) -> WhatIf | None:
        from trimtab.plan.memory import given_of
        from trimtab.plan.memory import release as memory_release
        from trimtab.plan.memory.whatif import WhatIf

        needed = (self.integer("tensor-parallel-size", 1) or 1) * (self.integer("pipeline-parallel-size", 1) or 1)
        if needed > MOST_CARDS or not self._splits():
            return None
        if len(cards) == 1:
            cards = cards * needed
        try:
            found = WhatIf(given_of(self.command), memory_release(self.version), self.require_model(), cards)
            utilization = found.budget().settings.gpu_memory_utilization
        except (UsageError, ModelError, ArithmeticError):
            return None  # ArithmeticError: sizes of nothing or beyond all reason, which rules of their own name
        return found if 0 < utilization <= 1 else None

    def _splits(self) -> bool:
        """Whether the tensor-parallel size suits the model; rules of their own say where it does not."""
        from trimtab.rules.command.facts import first_cut, heads_allow

        model, tensor = self.require_model(), self.integer("tensor-parallel-size", 1) or 1
        return heads_allow(model, tensor) and first_cut(self, model, tensor) is None

    def at_least(self, version: str) -> bool:
        """Whether the vLLM in question is `version` or newer."""
        return release(self.version) >= release(version)

    def integer(self, name: str, default: int | None = None) -> int | None:
        """The flag's value as a whole number; `default` when absent, unknown or not a number (another rule says so)."""
        text = self.command.get(name)
        if text is None:
            return default
        found = counted(text)
        return default if found is None else found

    def size(self, name: str) -> int | None:
        """The flag's value as vLLM reads a size ("32k" is 32,000, "32K" 32,768); None when absent, auto or no size."""
        text = self.command.get(name)
        try:
            found = whole(name, text) if text else None
        except UsageError:
            return None
        return found if found is not None and found >= 0 else None

    def env(self, name: str) -> str | None:
        """The variable's value as the command sets it; None when it does not, or passes it through from outside."""
        use = self.command.env.get(name)
        return use.value if use else None

    def set_value(self, use: FlagUse, value: str, grade: Grade = Grade.SAFE) -> Fix:
        """The fix that writes `value` as the flag's value."""
        return Fix(tuple(set_flag(self.command, use.name, value)), grade)

    def set_flag(self, name: str, value: str | None, grade: Grade = Grade.UNSAFE) -> Fix | None:
        """The fix that gives the flag this value, adding it where it is not given; None where it cannot be."""
        edits = tuple(set_flag(self.command, name, value))
        return Fix(edits, grade) if edits else None

    def set_bare(self, use: FlagUse, grade: Grade = Grade.SAFE) -> Fix:
        """The fix that leaves the flag without a value."""
        return Fix(tuple(set_flag(self.command, use.name, None)), grade)

    def remove(self, use: FlagUse, grade: Grade = Grade.SAFE) -> Fix:
        """The fix that takes the flag out."""
        return Fix(tuple(remove_flag(self.command, use.name)), grade)

    def place(self, *names: str) -> Span:
        """Where to point: the first of these flags that is given, else the model, else the whole command."""
        for name in names:
            use = self.command.last(name)
            if use is not None:
                return use.value_span or use.span
        model = self.command.model
        return model.span if model is not None and model.span is not None else self.command.span
