"""What an OpenAI-compatible server sends: event streams, completions, error bodies, model lists; read, not fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

DONE = "[DONE]"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/responses", "/embeddings", "/messages")
# Names under which servers state the context of a model in /v1/models: vLLM and SGLang; LM Studio and OpenRouter;
# Groq; Mistral.
_CONTEXT_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
# vLLM 0.4 to 0.33 (renderers/params.py, v1/engine/input_processor.py, entrypoints/openai/serving_engine.py), OpenAI's
# code, llama.cpp's type; "too long" and "context length" cover the rest.
_TOO_LONG = (
    "context length",
    "context_length",
    "maximum model length",
    "max_model_len",
    "exceed_context_size",
    "context window",
    "context size",
    "too long",
    "too many tokens",
    "input length",
    "must be less than",
    "reduce the length",
)


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event of a stream: its data lines joined by line feeds, and its type."""

    data: str
    event: str = "message"


class EventStream:
    """A `text/event-stream` parser: bytes in, whole events out, whatever the cuts between the pieces (WHATWG HTML 9.2).

    Lines end in LF, CR or CRLF; text is decoded by line, so a character of many bytes may be cut anywhere.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._event = ""

    @property
    def between(self) -> bool:
        """Whether nothing is kept of an event that has begun."""
        return not self._pending and not self._data and not self._event and not self._after_cr

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that `piece` completes, in order."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        self._pending += piece
        events: list[ServerSentEvent] = []
        while (line := self._line()) is not None:
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def _line(self) -> str | None:
        """Cut the next line off; no byte is searched twice, so that a long event costs linear time."""
        match = _LINE_END.search(self._pending, self._searched)
        if match is None:
            self._searched = len(self._pending)
            return None
        end, after = match.span()
        self._after_cr = after == len(self._pending) and self._pending[end:after] == b"\r"
        raw = bytes(self._pending[:end])
        del self._pending[:after]
        self._searched = 0
        if self._first:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        return raw.decode("utf-8", errors="replace")

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            event = ServerSentEvent("\n".join(self._data), self._event or "message") if self._data else None
            self._data, self._event = [], ""
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        return None


class Usage(msgspec.Struct, frozen=True):
    """Tokens that the server counted for one request."""

    prompt_tokens: int
    completion_tokens: int


class ApiFault(msgspec.Struct, frozen=True):
    """An answer that is an error: the HTTP status, and what its body says in whichever shape the server uses."""

    status: int
    message: str
    type: str = ""
    param: str = ""
    html: bool = False

    @property
    def about_length(self) -> bool:
        """Whether the body says that the prompt is longer than the context."""
        text = f"{self.message} {self.type} {self.param}".lower()
        return any(word in text for word in _TOO_LONG)

    @property
    def about_model(self) -> bool:
        """Whether a 404 is about the model's id, not about the path (vLLM: NotFoundError, param `model`)."""
        return self.status == 404 and (self.param == "model" or "model" in self.message.lower())


class Delta(msgspec.Struct, frozen=True):
    """What one answer, or one event of a stream, adds."""

    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    fault: ApiFault | None = None


class ServedModel(msgspec.Struct, frozen=True):
    """One entry of /v1/models; `context_tokens` is None where the server does not state it."""

    id: str
    context_tokens: int | None


def decode(body: bytes | str) -> Any | None:
    """The JSON value in `body`, or None when it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read_fault(status: int, body: bytes) -> ApiFault:
    """Read an error body: OpenAI's `{"error": {...}}`, vLLM's older flat one, FastAPI's `detail`, text or a page."""
    value = decode(body)
    if isinstance(value, Mapping):
        inner = value.get("error", value.get("detail", value))
        if isinstance(inner, Mapping):
            message = str(inner.get("message") or inner.get("error") or msgspec.json.encode(inner).decode())
            kind = str(inner.get("type") or inner.get("code") or "")
            return ApiFault(status, printable(message, 300), kind, str(inner.get("param") or ""))
        text = inner if isinstance(inner, str) else msgspec.json.encode(inner).decode()
        return ApiFault(status, printable(text, 300))
    return ApiFault(status, printable(body.decode("utf-8", errors="replace"), 300), html=is_html(body))


def printable(text: str, most: int = 120) -> str:
    """At most `most` characters of a server's words in one line, without control characters, for showing."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def is_html(body: bytes) -> bool:
    """Whether `body` is a web page, as a proxy, a login wall or another program on the port would send."""
    return body.lstrip()[:15].lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))


def read_delta(value: Any) -> Delta | None:
    """Read a completion or a chunk of one (chat or plain); None when `value` is neither that nor an error.

    The thoughts of a reasoning model count as text: `reasoning` (vLLM 0.12 and later) or `reasoning_content`.
    """
    if not isinstance(value, Mapping):
        return None
    if value.get("error"):
        return Delta(fault=read_fault(_status(value), msgspec.json.encode(value)))
    choices = value.get("choices")
    if not isinstance(choices, list):
        return None
    usage = _usage(value.get("usage"))
    if not choices or not isinstance(choices[0], Mapping):
        return Delta(usage=usage)
    first = choices[0]
    part = first.get("delta") or first.get("message")
    if not isinstance(part, Mapping):
        part = {}
    found = (part.get("content"), part.get("reasoning"), part.get("reasoning_content"), first.get("text"))
    text = "".join(piece for piece in found if isinstance(piece, str))
    reason = first.get("finish_reason")
    return Delta(text, reason if isinstance(reason, str) else None, usage)


def read_models(value: Any) -> tuple[ServedModel, ...] | None:
    """Read the answer of /v1/models; None when it is not a model list."""
    if not isinstance(value, Mapping) or not isinstance(value.get("data"), list):
        return None
    found: list[ServedModel] = []
    for entry in value["data"]:
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            stated = (entry.get(key) for key in _CONTEXT_KEYS)
            found.append(ServedModel(entry["id"], next((n for n in stated if isinstance(n, int) and n > 0), None)))
    return tuple(found)


def split_base_url(url: str) -> str:
    """The root of a server, without `/v1`, without the path of one endpoint, and without a slash at its end."""
    root = url.strip().rstrip("/")
    for endpoint in _ENDPOINTS:
        if root.endswith(endpoint):
            root = root.removesuffix(endpoint)
            break
    return root.removesuffix("/v1").rstrip("/")


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens", 0)
    if not isinstance(prompt, int):
        return None
    return Usage(prompt, completion if isinstance(completion, int) else 0)


def _status(value: Mapping[str, Any]) -> int:
    inner = value.get("error")
    code = inner.get("code") if isinstance(inner, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
