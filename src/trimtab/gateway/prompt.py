"""How many tokens a request's prompt may have, without a tokenizer: a bound for limits, never for usage."""

from __future__ import annotations

import msgspec

BYTES_PER_TOKEN = 4  # of a whole body: more than it has in most languages, far more where images are in it
_MEDIA = frozenset({"data", "file_data", "image_url", "input_audio", "url"})  # fields that may hold bytes as base64
_LEAST_MEDIA = 1024


def careful(body: bytes) -> int:
    """Of the texts in the body alone, without images and sounds; of non-ASCII text three characters make two tokens."""
    try:
        return _tokens(msgspec.json.decode(body), "")
    except (msgspec.DecodeError, RecursionError):
        return len(body) // BYTES_PER_TOKEN


def _tokens(value: object, name: str) -> int:
    if isinstance(value, str):
        if name in _MEDIA and len(value) >= _LEAST_MEDIA:
            return 0
        if value.isascii():
            return len(value) // BYTES_PER_TOKEN
        wide = sum(1 for character in value if ord(character) > 127)
        return (len(value) - wide) // BYTES_PER_TOKEN + wide * 2 // 3
    if isinstance(value, list):
        return len(value) if value and isinstance(value[0], int) else sum(_tokens(item, name) for item in value)
    if isinstance(value, dict):
        return sum(_tokens(item, key) for key, item in value.items())
    return 0
