"""The card ran out of memory while requests were served.

What it does: recognises an allocation that failed after the server was ready.
Why it matters: The engine dies and every request with it. vLLM's share covers what the profile run saw; larger logits
    (logprobs, guided decoding), new kernels, NCCL buffers, adapters or another process come on top.
How to fix: lower --gpu-memory-utilization to the share named, so that more is left beside vLLM's share. Do not raise
    it: the KV cache takes all that is added.
When to ignore: never; the engine is dead until it is started again.
Sources: vllm/v1/worker/gpu_worker.py (determine_available_memory), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.log.fixes import take_less
from trimtab.rules.log.oom import Stage, shortage
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    found = shortage(context)
    if found is None or found.stage is not Stage.SERVING:
        return
    advice, fix = take_less(context, found.lacking_gib, found.total_gib)
    message = msg(
        "the card ran out of memory while serving: {words}; {advice}",
        zh="服务期间显存用尽：{words}；{advice}",
        words=found.words,
        advice=advice,
    )
    yield context.finding(found.hit, message, LIKELY, fix=fix)


RULE = Rule(
    code="LOG007",
    name="out-of-memory-while-serving",
    severity=Severity.ERROR,
    summary=msg("The card ran out of memory while requests were served.", zh="服务请求期间显存用尽。"),
    check=check,
    cause=Cause.OOM_RUNTIME,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory/",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO:     Application startup complete.\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in execute_model\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 1.20 GiB is free.\n",
            at="line 4: torch.OutOfMemoryError",
        ),
    ),
    good=(
        Example(
            "(APIServer pid=1) INFO:     Application startup complete.\n"
            "(APIServer pid=1) WARNING 11-30 03:43:16 [x.py:1] requests are preempted\n"
        ),
    ),
)
