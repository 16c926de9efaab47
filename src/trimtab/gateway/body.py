"""The few fields of a request's body that the gateway reads, and the two that it may change; the rest stays bytes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from trimtab.gateway.request import Refused


class StreamOptions(msgspec.Struct):
    """What an OpenAI client may ask of a stream."""

    include_usage: bool | None = None


class Asked(msgspec.Struct):
    """What a request asks for."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None


_decoder = msgspec.json.Decoder(Asked)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MODEL, _NAMED = b'"model"', re.compile(rb'"model"\s*:\s*("[^"\\]*")')
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
_AT = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(.*)`")


def read(body: bytes, content_type: bytes | None = b"application/json") -> Asked:
    """The model and the stream of a JSON body. Refused 400 naming the field that is wrong, 415 for another type."""
    if content_type != b"application/json" and content_type is not None:
        kind = content_type.partition(b";")[0].strip().lower()
        if kind != b"application/json" and not kind.endswith(b"+json"):
            shown = kind.decode("latin-1")
            raise Refused(415, "unsupported_media_type", f"Content-Type is {shown}: this path takes application/json")
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        what, field = (found[1], found[2] or None) if found else (str(error), None)
        missing = _MISSING.search(what)
        field = missing[1] if missing and field is None else field
        raise Refused(400, "invalid_request", f"{field or 'the body'}: {what}", param=field) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None


def changed(body: bytes, *, model: str | None, ask_usage: bool) -> bytes:
    """The body with another model's id and with usage asked of the stream; all other fields byte for byte."""
    if not ask_usage and model is not None and body.count(_MODEL) == 1:
        found = _NAMED.search(body)  # the one key "model" in it is the top's own, so its value alone is replaced
        if found is not None:
            return b"%b%b%b" % (body[: found.start(1)], msgspec.json.encode(model), body[found.end(1) :])
    fields: dict[str, Any] = _fields.decode(body)
    if model is not None:
        fields["model"] = model
    if ask_usage:
        options = fields.get("stream_options")
        known = _fields.decode(options) if options is not None and bytes(options) != b"null" else {}
        fields["stream_options"] = {**known, "include_usage": True} if known else _INCLUDE_USAGE
    return msgspec.json.encode(fields)


def read_form(body: bytes, content_type: bytes | None) -> Asked:
    """The model of a multipart form. Refused 400 or 415."""
    start, end = _model_of_form(body, content_type or b"")
    return Asked(body[start:end].decode("utf-8", "replace"))


def form_renamed(body: bytes, content_type: bytes, model: str) -> bytes:
    """The form with another model's id."""
    start, end = _model_of_form(body, content_type)
    return body[:start] + model.encode() + body[end:]


_BOUNDARY = re.compile(rb'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_PART = re.compile(
    rb'(?:[^\r\n]+\r\n)*?content-disposition:[^\r\n]*;\s*name="?model"?(?=[;\r])[^\r\n]*\r\n', re.IGNORECASE
)


def _model_of_form(body: bytes, content_type: bytes) -> tuple[int, int]:
    """Where the value of the part named "model" stands (RFC 7578)."""
    if not content_type.lower().startswith(b"multipart/form-data"):
        shown = content_type.decode("latin-1") or "missing"
        raise Refused(415, "unsupported_media_type", f"Content-Type is {shown}: this path takes multipart/form-data")
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise Refused(400, "invalid_request", "Content-Type names no boundary")
    mark = b"--" + (found[1] or found[2])
    at = body.find(mark)
    while at >= 0:
        head = at + len(mark) + 2
        following = body.find(b"\r\n" + mark, head)
        if following >= 0 and _PART.match(body, head):
            return body.index(b"\r\n\r\n", head) + 4, following
        at = following + 2 if following >= 0 else -1
    raise Refused(400, "invalid_request", "the form has no field model", param="model")
