"""Embeddings, where the server makes them: finite, as many as asked, in order, the same alone and in a batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any

from trimtab.bench.criterion import Criterion, Figure
from trimtab.bench.inquiry import Inquiry, Reply
from trimtab.bench.prompt import text_of
from trimtab.messages import Message, msg

TEXTS = (
    "A small plate turns at the stern of the ship.",
    "The price of bread rose again this year.",
    "def add(a, b): return a + b",
    "今天的天气很好。",
)
ALIKE = 0.98  # cosine of one text alone and in a batch: batches round differently
AT_ONCE = 8


async def judge(run: Inquiry) -> Criterion:
    """Each text alone, then all in one request, then many requests at once, then one longer than the context."""
    began = time.perf_counter()
    first = await _ask(run, TEXTS[0])
    if first.status in (400, 404, 405, 422, 501):
        return Criterion("not_applicable", (msg("it makes no embeddings: {why}", why=first.why),))
    spent = time.perf_counter() - began
    alone = [_vectors(first), *[_vectors(await _ask(run, text)) for text in TEXTS[1:]]]
    batch = _vectors(await _ask(run, list(TEXTS)))
    at_once = await asyncio.gather(*(_ask(run, f"{run.mark} {n} {TEXTS[0]}") for n in range(AT_ONCE)))
    singles = [found[0] for found in alone if found and len(found) == 1]
    measured: dict[str, object] = {
        "dimensions": len(singles[0]) if singles else None, "seconds": round(spent, 3), "at_once": AT_ONCE,
        "failed_at_once": sum(_vectors(reply) is None for reply in at_once),
    }  # fmt: skip
    wrong = _wrong(first, singles, batch)
    if measured["failed_at_once"]:
        bad = next(reply for reply in at_once if _vectors(reply) is None)
        wrong.append(msg("{n} of {of} at once failed: {why}", n=measured["failed_at_once"], of=AT_ONCE, why=bad.why))
    said = [msg("{n} texts, vectors of {dimensions} numbers", n=len(TEXTS), dimensions=measured["dimensions"])]
    if not wrong:
        measured["least_alike"] = round(min(map(_cosine, singles, batch or [])), 4)
        wrong += await _beyond(run, measured, said)
    if wrong:
        step = msg("Read the server's log, and compare with the model's own library: vectors that differ find nothing.")
        return Criterion("failed", tuple(wrong), measured, (step,))
    return Criterion("passed", tuple(said), measured, figures=(Figure("one embedding", spent, "s", "less"),))


async def _ask(run: Inquiry, text: str | list[str]) -> Reply:
    return await run.post("/embeddings", {"model": run.server.model, "input": text, "encoding_format": "float"})


def _vectors(reply: Reply) -> list[list[float]] | None:
    """The vectors by their index; None when the reply holds none that can be used."""
    value: Any = reply.value
    data = value.get("data") if isinstance(value, dict) else None
    if reply.status != 200 or not isinstance(data, list) or not data:
        return None
    try:
        rows = sorted((int(row["index"]), [float(x) for x in row["embedding"]]) for row in data)
    except (KeyError, TypeError, ValueError):
        return None
    usable = [at for at, _ in rows] == list(range(len(rows))) and all(v and all(map(isfinite, v)) for _, v in rows)
    return [vector for _, vector in rows] if usable else None


def _wrong(first: Reply, singles: Sequence[list[float]], batch: list[list[float]] | None) -> list[Message]:
    if len(singles) < len(TEXTS):
        why = first.why if first.status != 200 else msg("vectors are missing, empty or not finite")
        return [msg("{n} of {of} texts gave a vector: {why}", n=len(singles), of=len(TEXTS), why=why)]
    if batch is None or len(batch) != len(TEXTS):
        return [msg("{of} texts in one request gave {n} vectors", of=len(TEXTS), n=len(batch or []))]
    if len({len(vector) for vector in (*singles, *batch)}) > 1:
        return [msg("the vectors are not equally long")]
    if any(not any(vector) for vector in singles):
        return [msg("a vector holds only zeros")]
    wrong = [
        msg("text {n} alone and in a batch differ: cosine {cosine:.3f}", n=at + 1, cosine=cosine)
        for at, cosine in enumerate(map(_cosine, singles, batch))
        if cosine < ALIKE
    ]
    if _cosine(singles[0], singles[1]) > 0.99999:
        wrong.append(msg("different texts have the same vector"))
    return wrong[:3]


async def _beyond(run: Inquiry, measured: dict[str, object], said: list[Message]) -> list[Message]:
    """A text longer than the context must be refused, not cut; where the context is not known it is not tried."""
    if run.context is None:
        return []
    reply = await _ask(run, text_of(run.context + 64, run.mark))
    measured["beyond_status"] = reply.status
    if reply.status in (400, 413, 422):
        said.append(msg("a longer text than the context was refused with {status}", status=reply.status))
        return []
    if reply.status == 200:
        return [
            msg("a text longer than the context of {context} was not refused but silently cut", context=run.context)
        ]
    return [msg("a text longer than the context was not refused with 400 but failed: {why}", why=reply.why)]


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = sqrt(sum(x * x for x in a)) * sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0
