"""What the translations are made of: chains of two, streams taken apart into events, bodies read or refused."""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.request import Refused
from trimtab.gateway.routes import Stream, Translation
from trimtab.gateway.translate import sse

T = TypeVar("T")
Fields = dict[str, msgspec.Raw]
_fields = msgspec.json.Decoder(Fields)


class Chain:
    """Two translations as one: `near` is the caller's, `far` the back end's."""

    def __init__(self, near: Translation, far: Translation) -> None:
        self._near, self._far = near, far
        self.path = far.path

    def request(self, body: bytes) -> bytes:
        """Through both."""
        return self._far.request(self._near.request(body))

    def answer(self, body: bytes) -> bytes:
        """Back through both."""
        return self._near.answer(self._far.answer(body))

    def error(self, status: int, body: bytes) -> bytes:
        """Back through both."""
        return self._near.error(status, self._far.error(status, body))

    def stream(self) -> Stream:
        """Back through both, event by event."""
        return _ChainStream(self._near.stream(), self._far.stream())


class _ChainStream:
    def __init__(self, near: Stream, far: Stream) -> None:
        self._near, self._far = near, far

    def feed(self, piece: bytes) -> bytes:
        return self._near.feed(self._far.feed(piece))

    def end(self) -> bytes:
        return self._near.feed(self._far.end()) + self._near.end()


class EventStream:
    """Takes a stream apart into events for `take`, and ends it for good after an error."""

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._over = False

    def feed(self, piece: bytes) -> bytes:
        """See Stream."""
        out: list[bytes] = []
        try:
            events = self._reader.feed(piece) if not self._over else []
        except sse.TooLong as error:
            self.fail(Refused(502, "back_end_failed", str(error)), out)
            events = []
        self._take_all(events, out)
        return b"".join(out)

    def end(self) -> bytes:
        """See Stream."""
        out: list[bytes] = []
        if not self._over:
            self._take_all(self._reader.end(), out, last=True)
        if not self._over:
            self.close(out)
            self._over = True
        return b"".join(out)

    def _take_all(self, events: list[sse.Event], out: list[bytes], *, last: bool = False) -> None:
        for event in events:
            if self._over:
                return
            if event.name == b":":
                out.append(sse.comment(event.data))
                continue
            try:
                self.take(event, out)
            except (msgspec.DecodeError, RecursionError) as error:  # a ValidationError is one, too
                wrong = Refused(502, "back_end_failed", f"the back end sent an event that is none: {error}")
                self.fail(CUT if last else wrong, out)

    def take(self, event: sse.Event, out: list[bytes]) -> None:
        """Add to `out` what the caller gets for one event. A DecodeError becomes an error in the caller's dialect."""
        raise NotImplementedError

    def close(self, out: list[bytes]) -> None:
        """Add to `out` what the caller gets when the stream ended without saying so."""
        raise NotImplementedError

    def fail(self, refused: Refused, out: list[bytes]) -> None:
        """Tell the caller of an error, the last thing that it gets."""
        self._over = True
        self.failed(refused, out)

    def failed(self, refused: Refused, out: list[bytes]) -> None:
        """Add the error to `out` in the caller's dialect."""
        raise NotImplementedError


CUT = Refused(502, "back_end_failed", "the back end's stream ended before the answer did")


def read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """A caller's body. Refused 400 naming the field that is wrong."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refused(400, "invalid_request", f"the body is not as it should be: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused(400, "invalid_json", f"the body is no JSON: {error}") from None


def write(body: object) -> bytes:
    """A body for a back end. Refused 400 when what a caller nested is too deep."""
    try:
        return msgspec.json.encode(body)
    except RecursionError:
        raise Refused(400, "invalid_request", "the body is nested too deeply") from None


def read_answer(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """A back end's body. Refused 502 if it is none."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused(502, "back_end_failed", f"the back end's answer cannot be read: {error}") from None


def present(body: bytes) -> Fields:
    """The fields of a caller's body that are not null."""
    return {name: value for name, value in read(_fields, body).items() if bytes(value) != b"null"}


def kept(body: bytes, translated: frozenset[str], keep: frozenset[str], dropped: frozenset[str]) -> Fields:
    """Fields that go on as they are. Refused 400 for one that is in none of the three lists; null means absent."""
    found: Fields = {}
    for name, value in present(body).items():
        if name in translated or name in dropped:
            continue
        if name not in keep:
            raise unsupported(name, "it has no counterpart in the protocol of this model's back end")
        found[name] = value
    return found


def unsupported(field: str, why: str) -> Refused:
    """For a field that cannot be carried over."""
    return Refused(400, "unsupported_parameter", f"{field}: {why}", param=field)


def required(field: str, why: str = "it is required") -> Refused:
    """For a field that is missing or wrong."""
    return Refused(400, "invalid_request", f"{field}: {why}", param=field)


class _Told(msgspec.Struct):
    message: str | None = None
    code: int | str | None = None
    type: str | None = None
    param: str | None = None


class _ErrorBody(msgspec.Struct):
    error: _Told | str | None = None
    message: str | None = None  # vLLM before 0.10 put it here
    detail: str | list[msgspec.Raw] | None = None  # FastAPI's own


_error = msgspec.json.Decoder(_ErrorBody)


def told(status: int, body: bytes) -> Refused:
    """What a back end's error body says, whatever its dialect."""
    message, code, param = None, None, None
    try:
        found = _error.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        found = _ErrorBody()
    if isinstance(found.error, _Told):
        message, param = found.error.message, found.error.param
        code = found.error.code if isinstance(found.error.code, str) else found.error.type
    elif found.error is not None:
        message = found.error
    elif isinstance(found.detail, list):
        message = "; ".join(bytes(item).decode("utf-8", "replace") for item in found.detail)
    message = message or found.message or (found.detail if isinstance(found.detail, str) else None)
    message = message or f"the back end answered {status}"
    return Refused(status, code or "back_end_error", message, param=param)


def error_for(path: bytes, status: int, body: bytes) -> bytes:
    """A back end's error in the dialect of who asked `path`."""
    return errors.body(path, told(status, body))


def new_id(prefix: str) -> str:
    """An id that nothing else has."""
    return prefix + secrets.token_hex(12)


class _Coded(msgspec.Struct):
    code: int | str | None = None


class _Error(msgspec.Struct):
    error: _Coded | str | None = None
    code: int | str | None = None


def status_within(body: bytes) -> int:
    """The status that an error within a stream would have had."""
    found = msgspec.json.decode(body, type=_Error)
    code = found.error.code if isinstance(found.error, _Coded) else found.code
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def object_of(text: str) -> msgspec.Raw | None:
    """JSON text if it is an object, else None."""
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    return msgspec.Raw(text.encode())


def both_reasonings(text: str) -> dict[str, Any]:
    """Under both names that clients look for: vLLM's own and the one that it had before."""
    return {"reasoning": text, "reasoning_content": text}
