"""One diagnosis for every verb: a log, and what this host knows of the launch that wrote it, to ranked findings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from trimtab.engine.command import LaunchCommand
from trimtab.engine.logs import Log, read_log
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.rules.doctor import Diagnosis, DoctorFacts, diagnose

if TYPE_CHECKING:
    from trimtab.facts.gpu import GpuSet
    from trimtab.facts.model import ModelFacts

CHUNK = 1 << 20
GZIP = b"\x1f\x8b"
PACKED = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04")
"""How zstd, xz, bzip2 and zip begin."""
_TEXT = bytes([*b"\t\n\v\f\r\b\x1b", *range(0x20, 0x7F), *range(0x80, 0x100)])
"""Bytes of text, whatever its encoding; of bytes drawn at random one in ten is none of them."""


def diagnosis_of(
    log: Path,
    command: LaunchCommand | None = None,
    *,
    exit_status: int | None = None,
    vllm: str | None = None,
    gpus: GpuSet | None = None,
) -> Diagnosis:
    """What the log rules say of a server's log, likeliest first. `exit_status` as Popen tells it (-9: killed).

    `command` is the launch that wrote it; without it, the one that the log prints. HostError when it cannot be read.
    """
    facts = DoctorFacts(command=command, vllm=vllm, gpus=gpus, model_of=model_of)
    return diagnose(read_file(log, exit_status), facts)


def read_file(path: Path, exit_status: int | None = None, *, after: Path | None = None) -> Log:
    """The log at `path`, as the end of the one `after` which it comes. HostError when it cannot be read."""
    reading = path
    try:
        with ExitStack() as opened:
            streams = []
            for reading in (after, path) if after else (path,):
                streams.append(opened.enter_context(reading.open("rb")))
            return read_log((chunk for stream in streams for chunk in chunks(stream)), exit_status)
    except OSError as error:
        raise HostError(
            msg("cannot read the log {file}: {reason}", file=reading, reason=error.strerror or type(error).__name__),
            hint=msg("A server has a log once its engine was started: trimtab ps --all."),
        ) from error


def chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream's bytes, as they come; unpacked where gzip packed them. HostError where they are no log."""
    first = stream.read(CHUNK)
    if first.startswith(GZIP):
        yield from _unpacked(first, stream)
        return
    _check_text(first)
    while first:
        yield first
        first = stream.read(CHUNK)


def _unpacked(first: bytes, rest: IO[bytes]) -> Iterator[bytes]:
    """What gzip packed, of any number of members; a cut one is read as far as it goes. HostError when it is damaged."""
    import zlib

    unpacker, packed = zlib.decompressobj(wbits=31), first
    try:
        while packed:
            if text := unpacker.decompress(packed, CHUNK):
                yield text
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed = unpacker.unused_data.lstrip(b"\0")  # as gzip itself does with padding
                unpacker = zlib.decompressobj(wbits=31)
            packed = packed or rest.read(CHUNK)
    except zlib.error as error:
        raise HostError(
            msg("the gzip file is damaged: {reason}", reason=error),
            hint=msg("Unpack what can be read and pipe it: zcat FILE | trimtab doctor -"),
        ) from error


def _check_text(first: bytes) -> None:
    """UsageError where this is packed or no text. NUL bytes are left out: a truncated log begins with a hole."""
    head = first[:4096].replace(b"\0", b"")
    strange = len(head.translate(None, _TEXT))
    if head.startswith(PACKED) or strange * 20 > len(head):
        raise UsageError(
            msg("this is no log: its first bytes are not text"),
            hint=msg("Of formats that are packed gzip alone is read: unpack it first, and name or pipe the text."),
        )


def model_of(command: LaunchCommand) -> ModelFacts | None:
    """The model's facts from this disk or the catalogue; nothing is fetched, and none is no error."""
    from trimtab.cli.known import known_model

    return known_model(command, None)
