"""Several streams at once all end with a finish reason: 4, then twice as many, up to the planned number."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from trimtab.bench.client import Exchange
from trimtab.bench.criterion import Criterion, estimated
from trimtab.bench.inquiry import OUTPUT_TOKENS, Inquiry
from trimtab.bench.stats import distribution
from trimtab.messages import Message, msg

_FIRST_LEVEL = 4


async def judge(run: Inquiry) -> Criterion:
    """All levels until one fails."""
    levels: list[Mapping[str, object]] = []
    firsts: list[float] = []
    for level in concurrency_levels(run.concurrency):
        prompts = (f"{run.mark} {level} {at}. Count from one to ten." for at in range(level))
        began = time.perf_counter()
        done = await asyncio.gather(*(run.ask(p, OUTPUT_TOKENS, stream=True) for p in prompts))
        spent = time.perf_counter() - began
        failed = [d for d in done if not d.finished]
        firsts = [d.first_token_s for d in done if d.first_token_s is not None]
        levels.append(
            {
                "requests": level,
                "finished": level - len(failed),
                "seconds": round(spent, 3),
                "slowest_first_token_s": round(max(firsts), 3) if firsts else None,
            }
        )
        if failed:
            said = msg("{failed} of {level} at once did not finish", failed=len(failed), level=level)
            step = msg("Lower --max-num-seqs to what finishes, and read the server's log: trimtab doctor LOG.")
            return Criterion("failed", (said, *_different(failed)), {"levels": levels}, (step,))
    shown = ", ".join(str(level["requests"]) for level in levels)
    found = distribution(firsts)
    figures = (estimated("first token", found.p50, "s", "less"),) if found is not None else ()
    return Criterion("passed", (msg("all finished, at once: {levels}", levels=shown),), {"levels": levels}, (), figures)


def concurrency_levels(most: int) -> tuple[int, ...]:
    """4, then twice as many, up to `most`; just `most` when it is less than 4."""
    levels = [_FIRST_LEVEL] if most > _FIRST_LEVEL else []
    while levels and levels[-1] * 2 < most:
        levels.append(levels[-1] * 2)
    return (*levels, most)


def _different(failed: list[Exchange]) -> list[Message]:
    return list({str(d.why): d.why for d in failed}.values())[:3]
