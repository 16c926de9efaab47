"""Head-of-line blocking: what one long prompt does to eight short streams beside it."""

from __future__ import annotations

from trimtab.bench.blocking import Blocking, Side, measure_blocking
from trimtab.bench.criterion import Criterion, Figure, estimated
from trimtab.bench.inquiry import NO_CONTEXT, NO_COUNT, Inquiry
from trimtab.bench.prompt import make_prompt, text_of
from trimtab.bench.stats import Distribution
from trimtab.bench.wire import Answer
from trimtab.messages import Message, msg

LONG_TOKENS, LONG_SHARE = 50_000, 0.8
LEAST_TOKENS = 256
SHORT_WORDS, SHORT_TOKENS = 24, (24, 100)  # in turn, so that some begin while a long prompt is computed
STREAMS, TIMES = 8, 3
FEW_GAPS, FEW_FIRSTS = 20, 3


async def judge(run: Inquiry) -> Criterion:
    """p99 of gaps and first tokens of the short streams, alone and while a long prompt is computed."""
    if run.context is None:
        return Criterion("not_measured", (NO_CONTEXT,))
    ruler = await run.ruler()
    if ruler is None:
        return Criterion("not_measured", (NO_COUNT,))
    wanted = min(LONG_TOKENS, int(run.context * LONG_SHARE))
    if wanted < LEAST_TOKENS:
        why = msg("{tokens} tokens, {share:.0%} of the context, are no long prompt", tokens=wanted, share=LONG_SHARE)
        return Criterion("not_applicable", (why,))
    prompts = [
        await make_prompt(run.client, run.server, ruler, int(wanted * 0.95), wanted, f"{run.mark} long {number}")
        for number in range(TIMES + 1)
    ]

    async def short(number: int) -> Answer:
        return await run.send(text_of(SHORT_WORDS, f"{run.mark} short {number}"), SHORT_TOKENS[number % 2])

    async def long(number: int) -> Answer:
        return await run.send(prompts[number].text, 1)

    first = await long(TIMES)  # kernels of that length are compiled
    if first.trouble is not None:
        why = msg("a prompt of {sent} tokens failed: {why}", sent=prompts[TIMES].tokens, why=first.trouble)
        return Criterion("failed", (why,), next=(msg("Read the server's log: trimtab doctor LOG."),))
    found = await measure_blocking(short, long, long_tokens=prompts[0].tokens, streams=STREAMS, times=TIMES)
    return _judge(run, found)


def _judge(run: Inquiry, found: Blocking) -> Criterion:
    itl, ttft = found.during.itl, found.during.ttft
    bounds = run.limits
    measured: dict[str, object] = {
        "streams": found.streams, "long_tokens": found.long_tokens,
        "long_first_token_s": [round(s, 3) for s in found.long_ttft_s],
        "before": _values(found.before), "during": _values(found.during),
        "bound_itl_ms": bounds.itl_ms, "bound_ttft_ms": bounds.ttft_ms, "failed": found.failed,
    }  # fmt: skip
    if found.failed or not found.long_ttft_s:
        why = msg("{n} requests failed beside a prompt of {tokens} tokens", n=found.failed, tokens=found.long_tokens)
        return Criterion("failed", (why,), measured, (msg("Read the server's log: trimtab doctor LOG."),))
    slowest = max(found.long_ttft_s)
    if (itl is None or itl.count < FEW_GAPS) and slowest * 1000 <= bounds.itl_ms:
        why = msg(
            "a prompt of {tokens} tokens took {ms:.0f} ms: nobody can have waited longer (bound {bound:g} ms)",
            tokens=found.long_tokens, ms=slowest * 1000, bound=bounds.itl_ms,
        )  # fmt: skip
        return Criterion("passed", (why,), measured)
    if itl is None or itl.count < FEW_GAPS:
        why = msg("only {n} gaps fell beside the long prompts", n=itl.count if itl else 0)
        return Criterion("not_measured", (why,), measured)
    said = [_told(msg("gaps"), found.before.itl, itl, bounds.itl_ms)]
    late = itl.p99.value * 1000 > bounds.itl_ms
    figures: list[Figure] = [estimated("gap p99 beside a long prompt", itl.p99, "s", "less")]
    if ttft is not None and ttft.count >= FEW_FIRSTS:
        said.append(_told(msg("first tokens"), found.before.ttft, ttft, bounds.ttft_ms))
        late = late or ttft.p99.value * 1000 > bounds.ttft_ms
        figures.append(estimated("first token p99 beside a long prompt", ttft.p99, "s", "less"))
    else:
        said.append(msg("too few streams began beside the long prompts to judge their first tokens"))
    series = {"gaps alone": _percentiles(found.before), "gaps beside a long prompt": _percentiles(found.during)}
    if late:
        step = msg("Lower --max-num-batched-tokens: the size of a step is what everybody else waits for.")
        return Criterion("failed", tuple(said), measured, (step,), tuple(figures), series)
    return Criterion("passed", tuple(said), measured, (), tuple(figures), series)


def _percentiles(side: Side) -> tuple[tuple[float, float], ...]:
    itl = side.itl
    if itl is None:
        return ()
    found = ((50, itl.p50), (90, itl.p90), (95, itl.p95), (99, itl.p99))
    return (*((float(q), estimate.value * 1000) for q, estimate in found), (100.0, itl.most * 1000))


def _values(side: Side) -> dict[str, object]:
    def ms(value: float | None) -> float | None:
        return None if value is None else round(value * 1000, 1)

    itl, ttft = side.itl, side.ttft
    return {
        "gaps": itl.count if itl else 0, "itl_p50_ms": ms(itl.p50.value if itl else None),
        "itl_p99_ms": ms(itl.p99.value if itl else None), "itl_most_ms": ms(itl.most if itl else None),
        "first_tokens": ttft.count if ttft else 0, "ttft_p99_ms": ms(ttft.p99.value if ttft else None),
    }  # fmt: skip


def _told(what: Message, before: Distribution | None, during: Distribution, bound_ms: float) -> Message:
    return msg(
        "{what}: p99 {before} ms alone, {during:.0f} ms beside the long prompt, bound {bound:g} ms",
        what=what, before=f"{before.p99.value * 1000:.0f}" if before else "-",
        during=during.p99.value * 1000, bound=bound_ms,
    )  # fmt: skip
