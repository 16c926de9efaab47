"""Error bodies in the dialect of the caller: OpenAI's for its paths, Anthropic's for /messages."""

from __future__ import annotations

import msgspec

from trimtab.gateway.inbound import Refused

_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
}  # fmt: skip
_OPENAI = {
    400: "invalid_request_error", 401: "invalid_request_error", 403: "invalid_request_error",
    404: "invalid_request_error", 413: "invalid_request_error", 429: "rate_limit_error",
}  # fmt: skip


def body(path: bytes, refused: Refused) -> bytes:
    """The error's JSON for whoever asked `path`."""
    if b"/messages" in path:
        kind = _ANTHROPIC.get(refused.status, "api_error")
        return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": refused.message}})
    kind = _OPENAI.get(refused.status, "server_error" if refused.status >= 500 else "invalid_request_error")
    error = {"message": refused.message, "type": kind, "param": None, "code": refused.code}
    return msgspec.json.encode({"error": error})
