"""A client that leaves frees its place: its requests are gone from the engine within a bound."""

from __future__ import annotations

import asyncio
import time

import httpx2

from trimtab.bench.criterion import Criterion, Figure
from trimtab.bench.inquiry import Inquiry
from trimtab.engine.vitals import Vitals
from trimtab.messages import msg

STREAMS = 4
TOKENS = 2000
BEGUN_S = 60.0
LOOK_S = 0.1
IDLE_S = 10.0


async def judge(run: Inquiry) -> Criterion:
    """Close four long streams in the middle and watch the server's counters."""
    before = await _idle(run)
    if before is None:
        why = msg("the server tells no vLLM counters at /metrics, so nobody sees whether a request is gone")
        return Criterion("not_measured", (why,), next=(msg("Start vLLM without --disable-log-stats."),))
    busy = before.running or 0
    begun = await _leave(run)
    if not begun:
        return Criterion("not_measured", (msg("no long stream began, or all were over before they could be left"),))
    left = time.perf_counter()
    spent, last = 0.0, before
    while True:
        found = await run.vitals()
        spent = time.perf_counter() - left
        if found is None:
            return Criterion("failed", (msg("/metrics no longer answers"),), {"streams": begun})
        last = found
        if ((last.running or 0) <= busy and not last.waiting) or spent > run.limits.cancel_s:
            break
        await asyncio.sleep(LOOK_S)
    running = (last.running or 0) - busy
    measured = {"streams": begun, "running": running, "freed_s": round(spent, 3), "bound_s": run.limits.cancel_s}
    if running > 0 or last.waiting:
        why = msg(
            "{running} of {streams} requests still ran {seconds:.1f} s after their client had left",
            running=running, streams=begun, seconds=spent,
        )  # fmt: skip
        step = msg(
            "Ask the server itself: a proxy that does not pass on that a client left keeps its requests running."
        )
        return Criterion("failed", (why,), measured, (step,))
    good = msg(
        "{streams} requests were gone {seconds:.1f} s after their client had left (bound {bound:g} s)",
        streams=begun, seconds=spent, bound=run.limits.cancel_s,
    )  # fmt: skip
    return Criterion("passed", (good,), measured, figures=(Figure("freed after", spent, "s", "less"),))


async def _idle(run: Inquiry) -> Vitals | None:
    """The counters once what earlier criteria asked is over, or after a while: others may use the server too."""
    ends = time.perf_counter() + IDLE_S
    while True:
        found = await run.vitals()
        if found is None or not found.running or time.perf_counter() > ends:
            return found
        await asyncio.sleep(LOOK_S)


async def _leave(run: Inquiry) -> int:
    """Begin the streams, read the start of each, close them; how many were left in the middle."""
    asked = (_begin(run, f"{run.mark} {at} leave. Count from one to ten thousand.") for at in range(STREAMS))
    return sum(await asyncio.gather(*asked))


async def _begin(run: Inquiry, prompt: str) -> bool:
    room = (run.context or TOKENS * 2) // 2
    body = run.server.body(prompt, min(TOKENS, room), stream=True) | ({"ignore_eos": True} if run.vllm else {})
    try:
        async with asyncio.timeout(BEGUN_S), run.client.stream("POST", run.server.url, json=body) as response:
            if response.status_code != 200:
                return False
            seen = b""
            async for piece in response.aiter_bytes():
                seen += piece
                if b"[DONE]" in seen:
                    return False
                if seen.count(b"data: ") >= 3:
                    return True
    except (httpx2.TransportError, httpx2.DecodingError, TimeoutError):
        return False
    return False
