"""The caller speaks OpenAI chat completions: what its ways to other protocols have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.gateway.routes import Stream
from trimtab.gateway.translate import chat
from trimtab.gateway.translate.translation import Fields, error_for, kept, present, read, unsupported, write

PATH = b"/chat/completions"
TRANSLATED = frozenset(chat.Request.__struct_fields__)
_EMPTY = (b"{}", b"[]")
_HARMLESS = {"logit_bias": _EMPTY, "modalities": (b'["text"]',), "functions": (b"[]",)}


class Way(msgspec.Struct, frozen=True):
    """Where one way differs. `kept` and `dropped`: fields that go on as they are, and those that need not."""

    path: bytes
    kept: frozenset[str]
    dropped: frozenset[str]
    no_logprobs: str  # why there are none
    asked: Callable[[chat.Request], dict[str, Any]]
    answer: Callable[[bytes, chat.Request], dict[str, Any]]
    stream: Callable[[chat.Request], Stream]


class FromChat:
    """One request."""

    def __init__(self, way: Way) -> None:
        self._way, self.path = way, way.path
        self._asked = chat.Request([], "")

    def request(self, body: bytes) -> bytes:
        """See Translation."""
        way = self._way
        self._asked = asked = read(chat.request, body)
        if (asked.n or 1) != 1:
            raise unsupported("n", "this model's back end gives one answer to a request")
        if asked.logprobs:
            raise unsupported("logprobs", way.no_logprobs)
        fields = kept(body, TRANSLATED, way.kept, way.dropped | _without_effect(present(body)))
        return write({**fields, **way.asked(asked)})

    def answer(self, body: bytes) -> bytes:
        """See Translation. Refused with the back end's own words where it answers that it failed."""
        return msgspec.json.encode(self._way.answer(body, self._asked))

    def error(self, status: int, body: bytes) -> bytes:
        """See Translation."""
        return error_for(PATH, status, body)

    def stream(self) -> Stream:
        """See Translation."""
        return self._way.stream(self._asked)


def tells_usage(asked: chat.Request) -> bool:
    """Whether a stream's last event is to tell the usage."""
    return bool(asked.stream_options and asked.stream_options.include_usage)


def _without_effect(fields: Fields) -> frozenset[str]:
    """Fields that are refused unless they ask for what happens anyway."""
    return frozenset(name for name, values in _HARMLESS.items() if bytes(fields.get(name, b"-")) in values)
