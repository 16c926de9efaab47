"""What a host rule sees: the record of a probe."""

from __future__ import annotations

import msgspec

from trimtab.engine.command import Source, Span
from trimtab.facts.host import HostRecord


class HostContext(msgspec.Struct, frozen=True):
    """The record, in the shape that the runner asks for: a host has no source text."""

    record: HostRecord

    @property
    def source(self) -> Source | None:
        return None

    @property
    def extent(self) -> Span | None:
        return None

    @property
    def version(self) -> str | None:
        """The engine's vLLM, where it is known."""
        return self.record.packages.vllm
