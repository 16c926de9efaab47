"""The paths that are passed on: the protocol of each, how a back end is asked, where the model is named."""

from __future__ import annotations

import re

import msgspec


class Served(msgspec.Struct, frozen=True):
    """A path that clients may ask with POST, with and without /v1 (vLLM's own rerank also with /v2)."""

    path: bytes  # without /v1: the name in the ledger, and what translations go by
    protocol: str  # as in `BackEndConfig.protocols`
    versioned: bool = True  # a back end has it under its base path (/v1); else beside it
    form: bool = False  # the model is a field of a multipart form, not of a JSON object
    asks_usage: bool = False  # its streams tell usage only when stream_options asks for it
    prompt: bytes = b'"input"'  # the field that begins a prompt, for the choice by prefix

    @property
    def name(self) -> str:
        """The path as text."""
        return _NAMES[self.path]


ALL = (
    Served(b"/chat/completions", "chat", asks_usage=True, prompt=b'"messages"'),
    Served(b"/completions", "completions", asks_usage=True, prompt=b'"prompt"'),
    Served(b"/responses", "responses"),
    Served(b"/messages", "messages", prompt=b'"messages"'),
    Served(b"/messages/count_tokens", "count_tokens", prompt=b'"messages"'),
    Served(b"/embeddings", "embeddings"),
    Served(b"/audio/speech", "audio"),
    Served(b"/audio/transcriptions", "audio", form=True),
    Served(b"/audio/translations", "audio", form=True),
    Served(b"/rerank", "rerank", prompt=b'"query"'),
    Served(b"/score", "score"),
    Served(b"/tokenize", "tokenize", versioned=False),
    Served(b"/detokenize", "detokenize", versioned=False),
    Served(b"/classify", "classify", versioned=False),
    Served(b"/pooling", "pooling", versioned=False),
)
_NAMES = {s.path: s.path.decode() for s in ALL}
SERVED: dict[bytes, Served] = {
    **{s.path: s for s in ALL},
    **{b"/v1" + s.path: s for s in ALL},
    b"/v2/rerank": next(s for s in ALL if s.path == b"/rerank"),
}
_VERSION = re.compile(r"/v\d[^/]*(?=/|$)")


def bases(path: str) -> tuple[bytes, bytes]:
    """The base path of a back end's URL for versioned paths and for those beside them.

    A path that names a version ("/v1", "/api/paas/v4", "/v1beta/openai") is taken as it is; to any other /v1 is added.
    """
    path = path.rstrip("/")
    found = _VERSION.search(path)
    if found is None:
        return (path + "/v1").encode(), path.encode()
    return path.encode(), path[: found.start()].encode()
