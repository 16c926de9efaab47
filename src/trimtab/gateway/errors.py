"""Errors in the caller's dialect, OpenAI's or Anthropic's: as a whole answer, or as the last event of a stream."""

from __future__ import annotations

import msgspec

from trimtab.gateway.request import Refused

_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
    504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


def body(path: bytes, refused: Refused, id: bytes = b"") -> bytes:
    """The error's JSON for whoever asked `path`."""
    if b"/messages" in path:
        return msgspec.json.encode(_anthropic(refused, id))
    return msgspec.json.encode({"error": _openai(refused)})


def event(path: bytes, refused: Refused, id: bytes = b"", number: int = 0) -> bytes:
    """The last event of a stream that cannot go on; `number` counts a response's events, which are numbered."""
    if b"/messages" in path:
        return b"event: error\ndata: %b\n\n" % msgspec.json.encode(_anthropic(refused, id))
    if b"/responses" in path:
        told = {
            "type": "error", "code": refused.code, "message": refused.message, "param": None, "sequence_number": number,
        }  # fmt: skip
        return b"event: error\ndata: %b\n\n" % msgspec.json.encode(told)
    return b"data: %b\n\n" % msgspec.json.encode({"error": _openai(refused)})


def _anthropic(refused: Refused, id: bytes) -> dict[str, object]:
    kind = _ANTHROPIC.get(refused.status, "api_error" if refused.status >= 500 else "invalid_request_error")
    error = {"type": kind, "message": refused.message}
    return {"type": "error", "error": error, "request_id": id.decode("latin-1") or None}


def _openai(refused: Refused) -> dict[str, object]:
    kind = "invalid_request_error"
    if refused.status == 429:
        kind = "rate_limit_error"
    elif refused.status >= 500:
        kind = "server_error"
    return {"message": refused.message, "type": kind, "param": refused.param, "code": refused.code}
