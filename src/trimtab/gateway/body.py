"""The few fields of a request's body that the gateway reads, and the two that it may change; the rest stays bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.gateway.inbound import Refused


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
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')


def read(body: bytes) -> Asked:
    """The model and the stream of a JSON body. Refused 400 naming what is wrong."""
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refused(400, "invalid_request", f"the body is not as it should be: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None


def changed(body: bytes, *, model: str | None, ask_usage: bool) -> bytes:
    """The body with another model's id and with usage asked of the stream; all other fields byte for byte."""
    fields: dict[str, Any] = _fields.decode(body)
    if model is not None:
        fields["model"] = model
    if ask_usage:
        options = fields.get("stream_options")
        known = _fields.decode(options) if options is not None and bytes(options) != b"null" else {}
        fields["stream_options"] = {**known, "include_usage": True} if known else _INCLUDE_USAGE
    return msgspec.json.encode(fields)
