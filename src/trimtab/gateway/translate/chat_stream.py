"""A stream of OpenAI chat completions as the ways from it read it, whoever's words it becomes."""

from __future__ import annotations

from trimtab.gateway.translate import chat, sse
from trimtab.gateway.translate.translation import EventStream, status_within, told


class ChatStream(EventStream):
    """Reads its end, its errors and its usage; each other chunk is given to `chunk`."""

    def __init__(self) -> None:
        super().__init__()
        self._ended = False  # whether the back end said so
        self._tokens: chat.Tokens | None = None

    def take(self, event: sse.Event, out: list[bytes]) -> None:
        """See EventStream."""
        if event.data == b"[DONE]":
            self._ended = True
            self.close(out)
            self._over = True
            return
        found = chat.answer.decode(event.data)
        if found.failed:
            self.fail(told(status_within(event.data), event.data), out)
            return
        if found.usage is not None:
            self._tokens = found.usage
        self.chunk(found, out)

    def chunk(self, found: chat.Answer, out: list[bytes]) -> None:
        """Add to `out` what the caller gets for one chunk."""
        raise NotImplementedError
