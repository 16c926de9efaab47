"""The few fields of a request's body that the gateway reads, and the two that it may change; the rest stays bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_SPELLINGS = re.compile(  # every way to write that key: parsers differ in which of two counts, and some ignore case
    rb'"(?:m|\\u00[46]d)(?:o|\\u00[46]f)(?:d|\\u00[46]4)(?:e|\\u00[46]5)(?:l|\\u00[46]c)"', re.IGNORECASE
)
_ESCAPED = re.compile(rb"\\u00[46]")
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
_AT = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(.*)`")


def read(body: bytes, content_type: bytes | None = b"application/json") -> Asked:
    """The model and the stream of a JSON body. Refused 400 naming the field that is wrong, 415 for another type.

    A body that names its model twice is refused: a back end may take the one that the key was not asked for.
    """
    if content_type != b"application/json" and content_type is not None:
        kind = content_type.partition(b";")[0].strip().lower()
        if kind != b"application/json" and not kind.endswith(b"+json"):
            shown = kind.decode("latin-1")
            told = f"Content-Type is {shown}: this path takes application/json"
            if kind == b"application/x-www-form-urlencoded":
                told += " (with curl: -H 'Content-Type: application/json')"
            raise Refused(415, "unsupported_media_type", told)
    try:
        if not body.isascii():
            body.decode()  # the decoder looks into the few strings alone that it reads
        asked = _decoder.decode(body)
        _named_once(body)
        return asked
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        what, field = (found[1], found[2] or None) if found else (str(error), None)
        missing = _MISSING.search(what)
        field = missing[1] if missing and field is None else field
        raise Refused(400, "invalid_request", f"{field or 'the body'}: {what}", param=field) from None
    except UnicodeDecodeError as error:
        raise Refused(400, "invalid_json", f"the body is not UTF-8: {error.reason} (byte {error.start})") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None


def _named_once(body: bytes) -> None:
    """Refused 400 when the top of a valid JSON object has the key "model" twice, in whatever spelling."""
    if body.lower().count(_MODEL) == 1 and (b"\\" not in body or _ESCAPED.search(body) is None):
        return
    within = sum(len(_SPELLINGS.findall(bytes(value))) for value in _fields.decode(body).values())
    if len(_SPELLINGS.findall(body)) - within != 1:  # of a key that is there twice only one value is in the dict
        raise Refused(400, "invalid_request", "the field model is given twice", param="model")


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


_BOUNDARY = re.compile(rb'boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_PARAMETER = rb';\s*([^\s=;"]+)=(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;"]*))\s*'
_PARAMETERS = re.compile(_PARAMETER)
_DISPOSITION = re.compile(rb"content-disposition:[ \t]*form-data[ \t]*((?:" + _PARAMETER + rb")*)", re.IGNORECASE)


def _model_of_form(body: bytes, content_type: bytes) -> tuple[int, int]:
    """Where the value of the one part named "model" stands (RFC 7578).

    Refused 400 where another parser could find another one: what is not written in the plain way, or there twice.
    """
    if not content_type.lower().startswith(b"multipart/form-data"):
        shown = content_type.decode("latin-1") or "missing"
        raise Refused(415, "unsupported_media_type", f"Content-Type is {shown}: this path takes multipart/form-data")
    found = _BOUNDARY.search(content_type)
    if found is None or content_type.lower().count(b"boundary") != 1:
        raise Refused(400, "invalid_request", "Content-Type must name one boundary")
    mark = b"--" + (found[1] or found[2])
    models = [(start, end) for name, start, end in _parts(body, mark) if name.lower() == b"model"]
    if not models:
        raise Refused(400, "invalid_request", "the form has no field model", param="model")
    if len(models) > 1:
        raise Refused(400, "invalid_request", "the field model is given twice", param="model")
    return models[0]


def _parts(body: bytes, mark: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name of each part, and where its value begins and ends."""
    at = 0
    while body.startswith(mark + b"\r\n", at):
        head = at + len(mark) + 2
        start, end = body.find(b"\r\n\r\n", head), body.find(b"\r\n" + mark, head)
        if start < 0 or end < start + 4:
            raise Refused(400, "invalid_request", "the form is not whole")
        yield _name_of_part(body[head:start]), start + 4, end
        at = end + 2
    if not body.startswith(mark + b"--", at):
        raise Refused(400, "invalid_request", "the form does not begin and end with its boundary")


def _name_of_part(head: bytes) -> bytes:
    lines = head.split(b"\r\n")
    told = [found for line in lines if (found := _DISPOSITION.fullmatch(line))]
    known = sum(b"content-disposition" in line.lower() for line in lines)
    names = [pair for pair in _PARAMETERS.findall(told[0][1]) if pair[0].lower().startswith(b"name")] if told else []
    plain = known == len(names) == 1 and names[0][0].lower() == b"name" and b"\\" not in names[0][1]
    if not plain or any(b"\n" in line or b"\r" in line for line in lines):
        raise Refused(400, "invalid_request", "each part of the form needs one plain Content-Disposition with its name")
    name: bytes = names[0][1] or names[0][2]
    return name
