"""The minutes before something happened, from the flight recorder's moments: a row a minute, and one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import ceil

import msgspec

from trimtab.engine.flight import Moment
from trimtab.messages import Message, msg

WINDOW_S = 600.0
_FULL, _NEARLY_NOTHING, _GREW_MIB = 0.95, 0.05, 1024
_STILL_S = 10.0


class Minute(msgspec.Struct, frozen=True):
    """What was seen in one minute; `ago` is how many minutes it began before the end. None: not seen."""

    ago: int
    running: int | None = None  # the most at once
    waiting: int | None = None
    kv: float | None = None  # the fullest, 0 to 1
    preemptions: int | None = None  # in this minute
    tokens_s: float | None = None  # generated
    longest_finished: int | None = None  # at most so many tokens, of requests that finished
    gpu_mib: int | None = None  # used, of the card that had least left
    gpu_total_mib: int | None = None
    ram_mib: int | None = None  # the least that was free
    silent: int = 0  # looks that /metrics did not answer


class Before(msgspec.Struct, frozen=True):
    """The minutes before `at`, oldest first, and what stands out in them."""

    at: float
    minutes: tuple[Minute, ...]
    sentence: Message


def minutes_before(moments: Iterable[Moment], at: float, window_s: float = WINDOW_S) -> Before:
    """The rows and the sentence for `window_s` up to `at` (seconds since the epoch), of moments in any span."""
    seen = [moment for moment in moments if at - window_s <= moment.at <= at]
    rows: dict[int, list[Moment]] = {}
    for moment in seen:
        rows.setdefault(max(1, ceil((at - moment.at) / 60)), []).append(moment)
    minutes: list[Minute] = []
    last: Moment | None = None
    for ago in sorted(rows, reverse=True):
        minutes.append(_minute(ago, rows[ago], last))
        last = rows[ago][-1]
    return Before(at, tuple(minutes), _sentence(seen, at))


def _minute(ago: int, seen: list[Moment], last: Moment | None) -> Minute:
    since = [last, *seen] if last is not None else seen
    used, total = _fullest(seen)
    span_s = since[-1].at - since[0].at
    tokens = grown([moment.generated for moment in since])
    return Minute(
        ago=ago,
        running=most([moment.running for moment in seen]),
        waiting=most([moment.waiting for moment in seen]),
        kv=max((moment.kv for moment in seen if moment.kv is not None), default=None),
        preemptions=grown([moment.preemptions for moment in since]),
        tokens_s=tokens / span_s if tokens is not None and span_s > 0 else None,
        longest_finished=most([moment.longest_finished for moment in seen]),
        gpu_mib=used,
        gpu_total_mib=total,
        ram_mib=min((moment.ram_mib for moment in seen if moment.ram_mib is not None), default=None),
        silent=sum(moment.silent for moment in seen),
    )


def most(values: Iterable[int | None]) -> int | None:
    """The largest that was seen."""
    return max((value for value in values if value is not None), default=None)


def grown(counts: Iterable[int | None]) -> int | None:
    """By how much a count grew; one that fell began anew at 0. None with fewer than two that were seen."""
    seen = [count for count in counts if count is not None]
    if len(seen) < 2:
        return None
    return sum(b - a if b >= a else b for a, b in pairwise(seen))


def _fullest(seen: Sequence[Moment]) -> tuple[int | None, int | None]:
    """Used and total MiB of the card that had least left at any time."""
    cards = [
        (total - used, used, total)
        for moment in seen
        for used, total in zip(moment.gpu_mib or (), moment.gpu_total_mib or (), strict=False)
    ]
    return (min(cards)[1], min(cards)[2]) if cards else (None, None)


def _sentence(seen: list[Moment], at: float) -> Message:
    if not seen:
        return msg("the flight recorder saw nothing in the 10 minutes before")
    told = [part for part in (tell(seen, at) for tell in _PARTS) if part is not None]
    if not told:
        return msg("nothing stands out in the 10 minutes before")
    whole = told[0]
    for part in told[1:]:
        whole = msg("{first}; {then}", first=whole, then=part)
    return whole


def _silence(seen: list[Moment], at: float) -> Message | None:
    answered = [moment.at for moment in seen if not moment.silent]
    if not seen[-1].silent:
        return None
    since = answered[-1] if answered else seen[0].at
    return msg("/metrics gave no answer in the last {s:.0f} s", s=at - since)


def _standstill(seen: list[Moment], at: float) -> Message | None:
    last = seen[-1]
    if not last.running or last.generated is None:
        return None
    since = last.at
    for moment in reversed(seen):
        if _moves(moment) != _moves(last):
            break
        since = moment.at
    if last.at - since < _STILL_S:
        return None
    return msg("{n} requests ran and nothing moved in the last {s:.0f} s", n=last.running, s=at - since)


def _moves(moment: Moment) -> tuple[object, ...]:
    return (moment.generated, moment.prompted, moment.steps, moment.finished, moment.kv)


def _host_memory(seen: list[Moment], at: float) -> Message | None:
    free = [moment.ram_mib for moment in seen if moment.ram_mib is not None]
    if not free or free[-1] > 0.5 * max(free):
        return None
    fell = msg("free host memory fell from {a:.1f} to {b:.1f} GiB", a=max(free) / 1024, b=free[-1] / 1024)
    return msg("{fell}: next to nothing", fell=fell) if free[-1] < max(_NEARLY_NOTHING * max(free), 1024) else fell


def _kv_cache(seen: list[Moment], at: float) -> Message | None:
    fullest = max((moment.kv for moment in seen if moment.kv is not None), default=None)
    preempted = grown([moment.preemptions for moment in seen])
    if fullest is None:
        return None
    if preempted:
        return msg("the KV cache was up to {kv:.0%} full, with {n} preemptions", kv=fullest, n=preempted)
    if fullest >= _FULL:
        return msg("the KV cache was {kv:.0%} full", kv=fullest)
    return msg("the KV cache was at most {kv:.0%} full", kv=fullest)


def _load(seen: list[Moment], at: float) -> Message | None:
    running, waiting = most([m.running for m in seen]), most([m.waiting for m in seen])
    if running is None:
        return None
    if not running and not waiting:
        return msg("no request ran")
    return msg("up to {running} requests ran and {waiting} waited", running=running, waiting=waiting or 0)


def _gpu_memory(seen: list[Moment], at: float) -> Message | None:
    used, total = _fullest(seen)
    first, _ = _fullest(seen[:1])
    if used is None or total is None:
        return None
    held = msg("{used:.1f} of {total:.1f} GiB", used=used / 1024, total=total / 1024)
    if first is not None and used - first >= _GREW_MIB:
        return msg("GPU memory grew from {start:.1f} to {held}", start=first / 1024, held=held)
    return msg("the fullest card held {held}", held=held)


def _prompts(seen: list[Moment], at: float) -> Message | None:
    longest = most([moment.longest_finished for moment in seen])
    if longest is None:
        return None
    return msg("the longest prompt of a finished request had at most {n} tokens", n=f"{longest:,}")


_PARTS: tuple[Callable[[list[Moment], float], Message | None], ...] = (
    _silence, _standstill, _host_memory, _kv_cache, _load, _gpu_memory, _prompts,
)  # fmt: skip
