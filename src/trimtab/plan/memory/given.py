"""What a launch says of itself, before vLLM's defaults: flags, environment, and how it is started."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.plan.memory.settings import Usage


class Given(msgspec.Struct, frozen=True):
    """What a launch says: vLLM's flag names (underscores) to values, its environment, and how it is started."""

    flags: Mapping[str, object]
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    usage: Usage = "server"

    def number(self, name: str) -> int | None:
        """A whole number above 0; what is not one counts as not given."""
        value = self.flags.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def real(self, name: str, default: float) -> float:
        value = self.flags.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def text(self, name: str) -> str | None:
        value = self.flags.get(name)
        return value if isinstance(value, str) else None

    def switch(self, name: str) -> bool | None:
        value = self.flags.get(name)
        return value if isinstance(value, bool) else None
