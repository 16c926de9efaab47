"""Head-of-line blocking: what one long prompt does to short streams that run beside it.

Short streams run all the time; a long prompt is sent among them, again and again. A gap between two chunks of a short
stream counts as `during` when it overlaps the time between the sending of a long prompt and its first token, else as
`before`: a prompt that is computed in one step gives its token together with theirs. A wait for a first token likewise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise

import msgspec

from trimtab.bench.stats import Distribution, distribution
from trimtab.bench.wire import Answer

BEFORE_S = 5.0  # of short streams alone, at most
EACH = 2  # answers of each stream are enough for it
BOUND_S = 0.5  # a reader sees a pause of half a second


class Side(msgspec.Struct, frozen=True):
    """The short streams in one state of the server; seconds."""

    itl: Distribution | None
    ttft: Distribution | None


class Blocking(msgspec.Struct, frozen=True):
    """What was seen. `passed` is None where too little was seen to judge."""

    streams: int
    long_tokens: int
    long_ttft_s: tuple[float, ...]
    before: Side
    during: Side
    bound_s: float
    failed: int

    @property
    def passed(self) -> bool | None:
        """Whether the 99th percentile of the gaps during long prompts keeps the bound."""
        if self.failed or not self.long_ttft_s:
            return False
        if self.during.itl is None or self.during.itl.count < 20:
            return None
        return self.during.itl.p99.value <= self.bound_s


Ask = Callable[[int], Awaitable[Answer]]  # number of the request, so that each prompt is a new one -> its answer


async def measure_blocking(
    short: Ask, long: Ask, *, long_tokens: int, streams: int = 8, times: int = 3, bound_s: float = BOUND_S
) -> Blocking:
    """Run `streams` short streams, and `times` a long prompt among them."""
    over = asyncio.Event()
    shorts: list[Answer] = []
    numbers = iter(range(10**9))

    async def talk() -> None:
        while not over.is_set():
            shorts.append(await short(next(numbers)))
            if shorts[-1].trouble is not None:
                return  # a server that refuses at once would be asked without end

    talking = [asyncio.create_task(talk()) for _ in range(streams)]
    longs: list[Answer] = []
    try:
        await _answers(shorts, EACH * streams, BEFORE_S)
        for number in range(times):
            longs.append(await long(number))
            await _answers(shorts, len(shorts) + streams, BEFORE_S / times)
    finally:
        over.set()
        await asyncio.gather(*talking)
    spans = [(a.sent, a.sent + a.times[0]) for a in longs if a.times]
    return Blocking(
        streams,
        long_tokens,
        tuple(a.times[0] for a in longs if a.times),
        _side(shorts, spans, within=False),
        _side(shorts, spans, within=True),
        bound_s,
        sum(a.trouble is not None for a in (*shorts, *longs)),
    )


async def _answers(found: list[Answer], count: int, most_s: float) -> None:
    """Until there are `count`, or the time is over."""
    ends = time.perf_counter() + most_s
    while len(found) < count:
        left = ends - time.perf_counter()
        if left <= 0:
            return
        await asyncio.sleep(min(left, 0.05))


def _side(answers: list[Answer], spans: list[tuple[float, float]], *, within: bool) -> Side:
    def inside(begin: float, end: float) -> bool:
        return any(begin < last and end > first for first, last in spans) is within

    whole = [a for a in answers if a.trouble is None and a.times]
    gaps = [b - c for a in whole for c, b in pairwise(a.times) if inside(a.sent + c, a.sent + b)]
    firsts = [a.times[0] for a in whole if inside(a.sent, a.sent + a.times[0])]
    return Side(distribution(gaps), distribution(firsts))
