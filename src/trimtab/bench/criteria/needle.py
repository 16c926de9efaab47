"""A fact hidden in a long text is found again, wherever it stands: at 0, 25, 50, 75 and 100% of the text."""

from __future__ import annotations

import random
from typing import Any

from trimtab.bench.client import Exchange
from trimtab.bench.criterion import Criterion, Figure, estimated
from trimtab.bench.inquiry import NO_CONTEXT, NO_COUNT, Inquiry
from trimtab.bench.prompt import count, text_of
from trimtab.bench.stats import share
from trimtab.messages import Message, msg

DEPTHS = (0, 25, 50, 75, 100)
OUTPUT_TOKENS = 64
FRAME_TOKENS = 60  # of the fact and the question
LEAST_TOKENS = 256
SLACK = 0.02  # of the length: texts that are only estimated stay so far below


async def judge(run: Inquiry) -> Criterion:
    """One prompt a depth; passes when all were answered and enough of the facts came back."""
    context = run.context
    if context is None:
        return Criterion("not_measured", (NO_CONTEXT,))
    ruler = await run.ruler()
    if ruler is None:
        return Criterion("not_measured", (NO_COUNT,))
    wanted = min(int(context * run.needle_share), context - OUTPUT_TOKENS - FRAME_TOKENS)
    if wanted < LEAST_TOKENS:
        why = msg("{share:.0%} of a context of {context} tokens is too short", share=run.needle_share, context=context)
        return Criterion("not_applicable", (why,))
    words = ruler.words((wanted - FRAME_TOKENS) * (1 - SLACK))
    rows: list[dict[str, Any]] = []
    for depth in DEPTHS:
        secret, prompt = make(words, depth, f"{run.mark} {depth}")
        sent = await count(run.client, run.server, prompt) if ruler.exact else None
        done = await run.ask(prompt, OUTPUT_TOKENS)
        rows.append(_row(depth, secret, sent or ruler.tokens(words), done))
        if not done.finished:
            why = msg("the fact at {depth}% was not answered: {why}", depth=depth, why=done.why)
            step = msg("Lower --max-model-len, or raise --timeout if the answer only comes late.")
            return Criterion("failed", (why,), {"depths": rows}, (step,))
    return _judge(run, rows)


def _row(depth: int, secret: str, sent: int, done: Exchange) -> dict[str, Any]:
    return {
        "depth_percent": depth, "sent_tokens": sent, "recalled": secret in done.text.replace(",", ""),
        "seconds": round(done.total_s, 3), "counted_tokens": done.usage.prompt_tokens if done.usage else None,
    }  # fmt: skip


def _judge(run: Inquiry, rows: list[dict[str, Any]]) -> Criterion:
    found, of, bound = sum(row["recalled"] for row in rows), len(rows), run.limits.recall
    measured = {"depths": rows, "recalled": found, "of": of, "bound": bound}
    cut = [row for row in rows if row["counted_tokens"] and row["counted_tokens"] < 0.9 * row["sent_tokens"]]
    seconds = [row["seconds"] for row in rows]
    figures = (
        estimated("recall", share(found, of), "share", "more"),
        Figure("a long prompt", sum(seconds) / of, "s", "less", min(seconds), max(seconds)),
    )
    said: tuple[Message, ...] = (
        msg("answered all {of} prompts of {tokens} tokens, recall {found} of {of}, bound {bound:.0%}",
            of=of, tokens=rows[0]["sent_tokens"], found=found, bound=bound),
    )  # fmt: skip
    series = {"recall": tuple((float(row["depth_percent"]), float(row["recalled"])) for row in rows)}
    if cut:
        why = msg("cut: {sent} tokens sent, {seen} counted", sent=cut[0]["sent_tokens"], seen=cut[0]["counted_tokens"])
        return Criterion("failed", (*said, why), measured, (msg("Let the server refuse what is too long."),), figures)
    if found < bound * of:
        step = msg(
            "Small models lose facts in long texts: serve a larger one, shorten its context, or state a bound: "
            "--bound recall=0.2."
        )
        return Criterion("failed", said, measured, (step,), figures, series)
    return Criterion("passed", said, measured, (), figures, series)


def make(words: int, depth: int, mark: str) -> tuple[str, str]:
    """The secret number, and a prompt of `words` filler words with it at `depth` percent."""
    secret = str(random.Random(mark).randrange(1_000_000, 10_000_000))
    filler = text_of(words, mark).split(" ")
    at = len(filler) * depth // 100
    fact = f"\nRemember: the secret number is {secret}.\n"
    text = " ".join([*filler[:at], fact, *filler[at:]])
    return secret, f"{text}\nWhat is the secret number in the text above? Answer with the number alone."
