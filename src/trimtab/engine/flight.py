"""One moment of a running server as the flight recorder keeps it: a line of JSON; what was not seen is absent."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.engine.vitals import Vitals, longest_finished


class Moment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Counts are since the engine's start. `longest_finished` is an upper bound in tokens, of requests that finished
    since the moment before: vLLM does not tell the prompts of running ones.
    """

    at: float  # seconds since the epoch
    running: int | None = None
    waiting: int | None = None
    kv: float | None = None  # 0 to 1
    preemptions: int | None = None
    finished: int | None = None
    generated: int | None = None  # tokens
    prompted: int | None = None  # tokens
    hits: int | None = None  # prompt tokens found in the prefix cache
    queries: int | None = None
    steps: int | None = None
    longest_finished: int | None = None
    gpu_mib: tuple[int, ...] | None = None  # used, of each card of the server
    gpu_total_mib: tuple[int, ...] | None = None
    ram_mib: int | None = None  # free for programs on this host, or in its container
    silent: bool = False  # /metrics did not answer


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Moment)


def encode_moment(moment: Moment) -> bytes:
    return _ENCODER.encode(moment) + b"\n"


def decode_moments(lines: Iterable[bytes]) -> list[Moment]:
    """The moments in `lines`; those torn by a crash, or zeroed by a lost power supply, are left out."""
    found: list[Moment] = []
    for line in lines:
        try:
            found.append(_DECODER.decode(line.strip(b"\x00\n")))
        except msgspec.DecodeError:
            continue
    return found


class MemoryUsed(msgspec.Struct, frozen=True):
    """Memory of this host's cards and programs, in MiB; None where nobody tells."""

    gpu_mib: tuple[int, ...] | None = None
    gpu_total_mib: tuple[int, ...] | None = None
    ram_mib: int | None = None


def moment_of(at: float, memory: MemoryUsed, now: Vitals | None, before: Vitals | None, *, silent: bool) -> Moment:
    """The moment that a look at /metrics and at the memory makes; `before` is the last look at the same engine."""
    seen = now or Vitals()
    return Moment(
        at=round(at, 2),
        running=seen.running,
        waiting=seen.waiting,
        kv=round(seen.kv_usage, 4) if seen.kv_usage is not None else None,
        preemptions=seen.preemptions,
        finished=seen.finished,
        generated=seen.generated,
        prompted=seen.prompted,
        hits=seen.hits,
        queries=seen.queries,
        steps=seen.steps,
        longest_finished=longest_finished(before, now) if before is not None and now is not None else None,
        gpu_mib=memory.gpu_mib,
        gpu_total_mib=memory.gpu_total_mib,
        ram_mib=memory.ram_mib,
        silent=silent,
    )
