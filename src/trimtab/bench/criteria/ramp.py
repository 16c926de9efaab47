"""Load rises 1, 2, 4, 8 ... to the planned number: errors, preemptions and rate at each step."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from trimtab.bench.criterion import Criterion, Figure, estimated
from trimtab.bench.inquiry import Inquiry
from trimtab.bench.stats import Estimate, distribution, mean
from trimtab.bench.wire import Answer
from trimtab.messages import Message, msg

TOKENS = 32
EACH = 2  # requests of one stream at least
STEP_S = 3.0
SLICES = 10
STORM = 1.0  # preemptions per request
FLAT = 1.05


async def judge(run: Inquiry) -> Criterion:
    """All steps until one has errors."""
    rows: list[dict[str, Any]] = []
    figures: list[Figure] = []
    for level in ramp_levels(run.concurrency):
        row, rate = await _step(run, level)
        rows.append(row)
        figures.append(estimated(f"rate at {level}", rate, "tokens/s", "more"))
        if row["errors"]:
            break
    series = {"rate": tuple((float(row["requests"]), float(row["tokens_s"])) for row in rows)}
    measured = {"levels": rows}
    last = rows[-1]
    said = [msg("{levels} at once: {rates} tokens/s", levels=", ".join(str(r["requests"]) for r in rows),
                rates=", ".join(f"{r['tokens_s']:g}" for r in rows))]  # fmt: skip
    if last["errors"]:
        said += [msg("at {level}: {n} times {kind}", level=last["requests"], n=n, kind=kind)
                 for kind, n in last["errors"].items()]  # fmt: skip
        return Criterion("failed", tuple(said), measured, (_lower(rows),), tuple(figures), series)
    stormy = next((row for row in rows if (row["preemptions"] or 0) > STORM * row["finished"]), None)
    if stormy is not None:
        said.append(msg("at {level}: {n} preemptions for {of} requests",
                        level=stormy["requests"], n=stormy["preemptions"], of=stormy["finished"]))  # fmt: skip
        return Criterion("failed", tuple(said), measured, (_lower(rows),), tuple(figures), series)
    said += _remarks(rows)
    return Criterion("passed", tuple(said), measured, (), tuple(figures), series)


def ramp_levels(most: int) -> tuple[int, ...]:
    """1, 2, 4 ... and `most` itself."""
    levels = [1]
    while levels[-1] * 2 < most:
        levels.append(levels[-1] * 2)
    return (*levels, most) if most > 1 else (1,)


def _lower(rows: list[dict[str, Any]]) -> Message:
    clean = [row["requests"] for row in rows if not row["errors"] and not row["preemptions"]]
    if not clean:
        return msg("Read the server's log: trimtab doctor LOG.")
    return msg(
        "Hold --max-num-seqs at {level}, the last step without errors, or give it more KV cache.", level=max(clean)
    )


def _remarks(rows: list[dict[str, Any]]) -> list[Message]:
    said: list[Message] = []
    if any(row["preemptions"] for row in rows):
        total = sum(row["preemptions"] or 0 for row in rows)
        said.append(msg("{n} preemptions: the KV cache is full now and then", n=total))
    elif rows[0]["preemptions"] is None:
        said.append(msg("preemptions not seen: no vLLM counters at /metrics"))
    flat = next((a for a, b in pairwise(rows) if b["tokens_s"] < FLAT * a["tokens_s"]), None)
    if flat is not None:
        said.append(msg("the rate rises no more beyond {level}", level=flat["requests"]))
    return said


async def _step(run: Inquiry, level: int) -> tuple[dict[str, Any], Estimate]:
    before = await run.vitals()
    began = time.perf_counter()
    answers: list[Answer] = []

    async def stream(number: int) -> None:
        for at in range(10**6):
            if at >= EACH and time.perf_counter() - began >= STEP_S:
                return
            answers.append(await run.send(f"{run.mark} {level} {number} {at} ramp. Count from one to thirty.", TOKENS))
            if answers[-1].trouble is not None:
                return

    await asyncio.gather(*(stream(number) for number in range(level)))
    ended = time.perf_counter()
    after = await run.vitals()
    whole = [a for a in answers if a.trouble is None]
    firsts = distribution([a.times[0] for a in whole if a.times])
    rate = _rate(whole, began, ended)
    preempted = None
    if before is not None and after is not None and after.preemptions is not None:
        preempted = after.preemptions - (before.preemptions or 0)
    row = {
        "requests": level, "finished": len(whole), "tokens_s": round(rate.value, 1),
        "first_token_p50_s": round(firsts.p50.value, 3) if firsts else None,
        "seconds": round(ended - began, 3), "preemptions": preempted,
        "errors": dict(Counter(a.trouble for a in answers if a.trouble is not None)),
    }  # fmt: skip
    return row, rate


def _rate(answers: Sequence[Answer], began: float, ended: float) -> Estimate:
    """Tokens a second, with the spread between tenths of the time; a chunk has the share of its answer's tokens."""
    slices = [0.0] * SLICES
    width = (ended - began) / SLICES
    for answer in answers:
        tokens = answer.usage.completion_tokens if answer.usage is not None else len(answer.times)
        for at in answer.times:
            place = int((answer.sent + at - began) / width)
            slices[max(0, min(SLICES - 1, place))] += tokens / len(answer.times)
    return mean([tokens / width for tokens in slices])
