"""V0 has no swap space left for sequences it had to set aside.

What it does: recognises the scheduler's refusal while serving.
Why it matters: Requests with several sequences (n above 1, beam search) cannot be computed again, only swapped; with
    the pool full V0 ends.
How to fix: give more --swap-space, or fewer sequences at once (--max-num-seqs); V1 has no swap space and does not
    fail like this.
When to ignore: never; the engine is dead.
Sources: vllm/core/scheduler.py (_swap_out), vLLM 0.2 to 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(r"Aborted due to the lack of CPU swap space")
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "the swap space in host memory is full: give more --swap-space, or a lower --max-num-seqs; V1 needs none",
            zh="主机内存中的交换空间已满：请增大 --swap-space 或降低 --max-num-seqs；V1 不需要",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG032",
    name="swap-space-exhausted",
    severity=Severity.ERROR,
    summary=msg("V0 has no swap space left for sequences it had to set aside.", zh="V0 的交换空间用尽，无法换出序列。"),
    check=check,
    cause=Cause.SWAP_SPACE_EXHAUSTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/core/scheduler.py",),
    bad=(
        Example(
            "RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap space to "
            "avoid this error.\n",
            at="line 1: RuntimeError: Aborted",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
