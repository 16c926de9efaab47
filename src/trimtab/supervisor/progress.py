"""What a long task tells whoever watches it; drawing it is the watcher's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.messages import Message


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a long task. `done` and `total` count in `unit` ("B", "files"); None where nobody can know."""

    phase: Message
    detail: str = ""
    done: int | None = None
    total: int | None = None
    unit: str = ""


Observer = Callable[[Progress], None]
