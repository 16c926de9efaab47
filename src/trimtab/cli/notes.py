"""What a download says on stderr when no display is open: its notes, and a line once in a while."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.facts.probe.transfer import Progress

EVERY_S = 5.0


class Notes:
    """A TransferObserver that writes plain lines."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._said_at = time.monotonic()

    def moved(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._said_at < EVERY_S:
            return
        self._said_at = now
        line = msg(
            "downloaded {done:.0f} of {total:.0f} MB, {rate:.1f} MB/s",
            done=progress.done_bytes / 1e6,
            total=(progress.total_bytes or 0) / 1e6,
            rate=progress.bytes_per_s / 1e6,
        )
        print(line.text(self._lang), file=sys.stderr, flush=True)

    def noted(self, note: Message) -> None:
        print(note.text(self._lang), file=sys.stderr, flush=True)
