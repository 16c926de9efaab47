"""The token counts that the server tells are right: what is billed and limited by."""

from __future__ import annotations

from trimtab.bench.criterion import Criterion
from trimtab.bench.inquiry import OUTPUT_TOKENS, Inquiry
from trimtab.bench.prompt import count, text_of
from trimtab.messages import Message, msg

WORDS = (16, 120)
SLACK_TOKENS, SLACK_SHARE = 8, 0.02  # a tokenizer may add a token or two of its own


async def judge(run: Inquiry) -> Criterion:
    """Compare `usage` with /tokenize, with the limit, with the chunks of a stream, and a short prompt with a long."""
    wrong: list[Message] = []
    told: list[int] = []
    counted: list[int | None] = []
    for words in WORDS:
        text = text_of(words, f"{run.mark} usage")
        counted.append(await count(run.client, run.server, text))
        done = await run.ask(text, OUTPUT_TOKENS)
        if not done.finished:
            return Criterion("not_measured", (msg("no answer to count: {why}", why=done.why),))
        if done.usage is None:
            return Criterion("failed", (msg("the answer counts no tokens (usage)"),), next=(_STEP,))
        told.append(done.usage.prompt_tokens)
        if done.usage.completion_tokens > OUTPUT_TOKENS:
            wrong.append(
                msg(
                    "{n} tokens of answer where {most} were allowed", n=done.usage.completion_tokens, most=OUTPUT_TOKENS
                )
            )
        if not done.usage.completion_tokens and done.text.strip():
            wrong.append(msg("0 tokens of answer, though there is text"))
    for mine, theirs in zip(counted, told, strict=True):
        if mine is not None and abs(mine - theirs) > max(SLACK_TOKENS, SLACK_SHARE * mine):
            wrong.append(msg("{told} tokens of prompt, and /tokenize counts {counted}", told=theirs, counted=mine))
    if told[1] - told[0] < (WORDS[1] - WORDS[0]) // 2:
        wrong.append(
            msg("{more} words more cost {tokens} tokens more", more=WORDS[1] - WORDS[0], tokens=told[1] - told[0])
        )
    streamed, chunks = await _streamed(run, wrong)
    measured = {"told": told, "counted": counted, "streamed_tokens": streamed, "streamed_chunks": chunks}
    if wrong:
        return Criterion("failed", tuple(wrong), measured, (_STEP,))
    good = msg("usage fits: {told} tokens of prompt", told=", ".join(str(n) for n in told))
    if counted[0] is None:
        return Criterion("passed", (good, msg("/tokenize is not there to compare with")), measured)
    return Criterion("passed", (good,), measured)


_STEP = msg("Do not bill or limit by this server's usage; count the tokens yourself.")


async def _streamed(run: Inquiry, wrong: list[Message]) -> tuple[int | None, int]:
    done = await run.send(f"{run.mark} usage. Count from one to ten.", OUTPUT_TOKENS)
    chunks = len(done.times)
    if done.usage is None:
        if done.trouble is None and done.streamed:
            wrong.append(msg("a stream tells no usage although it was asked to (stream_options.include_usage)"))
        return None, chunks
    tokens = done.usage.completion_tokens
    if done.streamed and tokens < chunks - 2:  # a role and an end may come as chunks of their own
        wrong.append(msg("a stream of {chunks} chunks counts {tokens} tokens", chunks=chunks, tokens=tokens))
    return tokens, chunks
