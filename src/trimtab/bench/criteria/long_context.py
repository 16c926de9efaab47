"""A prompt close below the context is answered in full, and a longer one is refused with 400, not cut."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.bench.client import Exchange
from trimtab.bench.criterion import Criterion, Figure, Verdict
from trimtab.bench.inquiry import NO_CONTEXT, NO_COUNT, OUTPUT_TOKENS, Inquiry
from trimtab.bench.prompt import Prompt, Ruler, make_prompt
from trimtab.engine.api import printable
from trimtab.messages import Message, msg

NEAR_SHARE = 0.01  # how far below the context a prompt counted by /tokenize may stay
GUESS_SHARE = 0.03  # the same for one whose length is only estimated


async def judge(run: Inquiry) -> Criterion:
    """Near the context, then beyond it."""
    context = run.context
    if context is None:
        return Criterion("not_measured", (NO_CONTEXT,))
    ruler = await run.ruler()
    if ruler is None:
        return Criterion("not_measured", (NO_COUNT,), {"context_tokens": context})
    high = context - OUTPUT_TOKENS
    if not ruler.exact:
        high = int(high * (1 - GUESS_SHARE))
    if high <= ruler.tokens(1):
        why = msg("a context of {context} tokens is too short to try", context=context)
        return Criterion("not_measured", (why,), {"context_tokens": context}, (_RAISE,))
    near_ok, near, said = await _near(run, ruler, high)
    counted = "tokenize" if ruler.exact else "usage"
    measured: dict[str, object] = {"context_tokens": context, "counted_by": counted, "near": near}
    if not near_ok:
        return Criterion("failed", (said,), measured, (_LOWER,))
    verdict, beyond, refused = await _beyond(run, ruler, max(context, run.server.context_tokens or 0))
    figures = (Figure("near the context", float(str(near["seconds"])), "s", "less"),)
    step = {"failed": (_CUTS,), "not_measured": (_RAISE,)}.get(verdict, ())
    return Criterion(verdict, (said, refused), measured | {"beyond": beyond}, step, figures)


_LOWER = msg("Lower --max-model-len to what the server holds: trimtab plan MODEL tells it.")
_RAISE = msg("Pass the context that the server was started with: --context.")
_CUTS = msg("Let the server refuse what is too long (vLLM does so with 400); cut prompts lose what users wrote.")


async def _near(run: Inquiry, ruler: Ruler, high: int) -> tuple[bool, Mapping[str, object], Message]:
    low = high - max(8, int(high * NEAR_SHARE))
    prompt = await make_prompt(run.client, run.server, ruler, low, high, f"{run.mark} near")
    done = await run.ask(prompt.text, OUTPUT_TOKENS)
    measured = _measures(prompt, done)
    if not done.finished:
        return False, measured, msg("a prompt of {sent} tokens failed: {why}", sent=prompt.tokens, why=done.why)
    if (seen := was_cut(prompt, done)) is not None:
        return False, measured, msg("cut: {sent} tokens sent, {seen} counted", sent=prompt.tokens, seen=seen)
    return (
        True,
        measured,
        msg("a prompt of {sent} tokens was accepted ({seconds:.1f} s)", sent=prompt.tokens, seconds=done.total_s),
    )


async def _beyond(run: Inquiry, ruler: Ruler, limit: int) -> tuple[Verdict, Mapping[str, object], Message]:
    low = limit + 1 if ruler.exact else int(limit * (1 + GUESS_SHARE)) + 1
    high = low + max(16, int(limit * NEAR_SHARE))
    prompt = await make_prompt(run.client, run.server, ruler, low, high, f"{run.mark} beyond")
    done = await run.ask(prompt.text, OUTPUT_TOKENS)
    return _judge_beyond(prompt, done, limit)


def was_cut(prompt: Prompt, done: Exchange) -> int | None:
    """The prompt tokens that the server counted, when they are fewer than were sent; None when all arrived."""
    if done.usage is None:
        return None
    least = prompt.tokens if prompt.exact else int(prompt.tokens * (1 - GUESS_SHARE))
    return done.usage.prompt_tokens if done.usage.prompt_tokens < least else None


def _judge_beyond(prompt: Prompt, done: Exchange, limit: int) -> tuple[Verdict, Mapping[str, object], Message]:
    measured = _measures(prompt, done)
    sent = prompt.tokens
    if done.fault is not None and done.fault.status == 400:
        said = printable(done.fault.message, 160)
        if done.fault.about_length:
            return "passed", measured, msg("one of {sent} was refused with 400: {text}", sent=sent, text=said)
        return (
            "passed",
            measured,
            msg("one of {sent} was refused with 400, though not in words of length: {text}", sent=sent, text=said),
        )
    if done.status != 200 or done.fault is not None or done.trouble is not None:
        why = msg("one of {sent} was not refused with 400 but failed: {why}", sent=sent, why=done.why)
        return "failed", measured, why
    if done.usage is None:
        why = msg("one of {sent} was not refused, and what was read of it is not counted", sent=sent)
        return "failed", measured, why
    seen = done.usage.prompt_tokens
    if seen <= limit or was_cut(prompt, done) is not None:
        return "failed", measured, msg("one of {sent} was not refused but silently cut to {seen}", sent=sent, seen=seen)
    return (
        "not_measured",
        measured,
        msg(
            "one of {sent} was answered in full, so its context is longer than {limit}: pass the real one, --context",
            sent=sent,
            limit=limit,
        ),
    )


def _measures(prompt: Prompt, done: Exchange) -> Mapping[str, object]:
    return {
        "sent_tokens": prompt.tokens,
        "counted_tokens": done.usage.prompt_tokens if done.usage is not None else None,
        "status": done.status,
        "seconds": round(done.total_s, 3),
    }
