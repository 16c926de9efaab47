"""Memory stays level under a steady load: host and cards of a server on this host, else its KV cache alone."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from trimtab.bench.criterion import Criterion, Figure, Verdict
from trimtab.bench.inquiry import Inquiry, Memory
from trimtab.messages import Message, msg

STREAMS = 4
TOKENS = 32
LOOKS = 60  # over the whole time, and at least one a second
LEAST_S = 10.0
RESERVE_S = 3.0  # of the time budget, for what comes after
KV_LEFT = 0.02  # share of the KV cache that may stay in use with nothing running; a prefix cache holds none in use
SETTLE_S = 5.0


async def judge(run: Inquiry) -> Criterion:
    """Compare the second quarter of the time with the last: the first one still fills caches."""
    wanted, left = run.memory_minutes * 60, run.left_s()
    lasts = wanted if left is None else min(wanted, left - RESERVE_S)
    if lasts < min(LEAST_S, wanted):
        return Criterion(
            "not_measured", (msg("the time budget leaves {seconds:.0f} s for it", seconds=max(0.0, lasts)),)
        )
    looks: list[tuple[float, Memory]] = []
    asked = [0, 0]  # answered, failed
    began = time.perf_counter()
    load = [asyncio.create_task(_talk(run, number, began + lasts, asked)) for number in range(STREAMS)]
    gone = False
    try:
        while (at := time.perf_counter() - began) < lasts:
            if run.memory is not None:
                found = await asyncio.to_thread(run.memory)
                gone = gone or found is None
                looks.append((at, found or Memory()))
            await asyncio.sleep(min(1.0, lasts / LOOKS))
        await asyncio.gather(*load)
    finally:
        for task in load:
            task.cancel()
    kv = await _kv_left(run)
    measured: dict[str, object] = {
        "seconds": round(time.perf_counter() - began, 1), "wanted_s": wanted, "requests": sum(asked),
        "failed": asked[1], "kv_usage_after": kv, "bound_mib": run.limits.memory_mib,
    }  # fmt: skip
    if gone:
        why = msg("a process of the server ended meanwhile")
        return Criterion("failed", (why,), measured, (msg("Read the server's log: trimtab doctor LOG."),))
    return _judge(run, looks, measured, lasts)


async def _talk(run: Inquiry, number: int, until: float, asked: list[int]) -> None:
    """Requests of changing length until the time is over, or until one fails."""
    for at in range(10**9):
        if time.perf_counter() >= until:
            return
        words = "and on " * (1 + (at * 7 + number) % 40)
        prompt = f"{run.mark} {number} {at} steady. Tell a story {words}"
        if run.text:
            ok = (await run.send(prompt, TOKENS)).trouble is None
        else:
            ok = (await run.post("/embeddings", {"model": run.server.model, "input": prompt})).status == 200
        asked[0 if ok else 1] += 1
        if not ok:
            return


async def _kv_left(run: Inquiry) -> float | None:
    """KV cache in use once nothing runs any more; None where it is not told or others keep the server busy."""
    ends = time.perf_counter() + SETTLE_S
    while True:
        found = await run.vitals()
        if found is None:
            return None
        if not found.running and not found.waiting:
            return found.kv_usage
        if time.perf_counter() > ends:
            return None
        await asyncio.sleep(0.2)


def _judge(run: Inquiry, looks: list[tuple[float, Memory]], measured: dict[str, object], lasts: float) -> Criterion:
    figures: list[Figure] = []
    said: list[Message] = []
    wrong: list[Message] = []
    series: dict[str, tuple[tuple[float, float], ...]] = {}
    for name, what in (("host_mib", msg("host")), ("gpu_mib", msg("cards"))):
        found = tuple((at, value) for at, memory in looks if (value := getattr(memory, name)) is not None)
        second = [value for at, value in found if lasts / 4 <= at < lasts / 2]
        last = [value for at, value in found if at >= lasts * 3 / 4]
        if not second or not last:
            continue
        grown = median(last) - median(second)
        series[name] = found
        measured |= {name: round(median(last), 1), f"{name}_grown": round(grown, 1)}
        told = msg(
            "{what}: {level:,.0f} MiB, {grown:+,.0f} in {seconds:.0f} s, bound {bound:g}",
            what=what, level=median(last), grown=grown, seconds=lasts / 2, bound=run.limits.memory_mib,
        )  # fmt: skip
        (wrong if grown > run.limits.memory_mib else said).append(told)
        figures.append(Figure(f"{name} level", median(last), "MiB", "less", min(last), max(last)))
    kv = measured["kv_usage_after"]
    if isinstance(kv, float) and kv > KV_LEFT:
        wrong.append(msg("{share:.1%} of the KV cache stays in use with nothing running", share=kv))
    elif isinstance(kv, float):
        said.append(msg("KV cache: {share:.1%} in use with nothing running", share=kv))
    if measured["failed"]:
        wrong.append(msg("{n} of {of} requests failed", n=measured["failed"], of=int(str(measured["requests"]))))
    if not series:
        said.append(
            msg("the memory of its processes is not seen: it is no server of this host that can be looked into")
        )
    if wrong:
        step = msg(
            "Go on longer (--memory-minutes) and with fewer streams; if it still grows, report it: trimtab report."
        )
        return Criterion("failed", (*wrong, *said), measured, (step,), tuple(figures), series)
    verdict: Verdict = "passed" if series or isinstance(kv, float) else "not_measured"
    return Criterion(verdict, tuple(said), measured, (), tuple(figures), series)
