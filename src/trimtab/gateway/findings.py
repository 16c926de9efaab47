"""What reading and checking a configuration find, and where in its text."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.gateway.config import Config
from trimtab.messages import Message

Place = tuple[str | int, ...]


class Finding(msgspec.Struct, frozen=True):
    """One fault; line and column count from 1 (0: of the whole file)."""

    message: Message
    hint: Message
    line: int = 0
    column: int = 0
    severity: Literal["error", "warning"] = "error"


class Reading(msgspec.Struct, frozen=True):
    """What a text holds: `config` is None when there are findings. `places`: where each value stands."""

    config: Config | None
    findings: tuple[Finding, ...]
    places: dict[Place, tuple[int, int]]

    def at(self, place: Place) -> tuple[int, int]:
        """Line and column of a value, or of the nearest one around it that the text holds."""
        while place and place not in self.places:
            place = place[:-1]
        return self.places.get(place, (0, 0))
