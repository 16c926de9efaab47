"""The log ends while vLLM measures its peak, without an error.

What it does: speaks where a start loaded its weights, said nothing of a KV cache after it, shows no error, and its
    workers end or its log does.
Why it matters: In old versions a worker that runs out of memory is killed without a word, on the card or on the host;
    the log then just stops.
How to fix: lower --max-num-batched-tokens (V0: --max-model-len, or turn on chunked prefill), with an encoder
    --limit-mm-per-prompt; look at the kernel's log for a killed process (dmesg). Wait first: compiling takes minutes.
When to ignore: when the log was copied before the start was over.
Sources: vllm/worker/worker.py (determine_num_available_blocks) and vllm/executor/multiproc_worker_utils.py, vLLM
    0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, LIKELY, POSSIBLE, LogContext
from trimtab.rules.log.oom import OOM, Stage, stage_before
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    if context.failed or context.facts.served or context.facts.stopped:
        return
    if stage_before(context, context.log.lines + 1) is not Stage.PROFILE or context.first(OOM):
        return
    hit = context.last(r"(?i)model loading took|loading (?:model )?weights took|profile run")
    if hit is None:
        return
    killed = context.first(r"Killing local vLLM worker processes|Worker exiting", kinds=EVERYWHERE)
    yield context.finding(
        [hit, *([killed] if killed else [])],
        msg(
            "the log ends in the profile run, right after the weights were loaded: a worker that ends here "
            "without a word has "
            "run out of memory; a start that goes on is compiling",
            zh="日志在权重加载之后的试运行阶段中断：此处无声退出的进程多半是内存或显存不足；若仍在运行则是在编译",
        ),
        LIKELY if killed else POSSIBLE,
    )


RULE = Rule(
    code="LOG020",
    name="log-ends-in-profile-run",
    severity=Severity.WARNING,
    summary=msg(
        "The log ends while vLLM measures its peak, without an error.", zh="日志在试运行阶段中断，没有错误信息。"
    ),
    check=check,
    cause=Cause.OOM_PROFILE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py",),
    bad=(
        Example(
            "INFO 06-26 07:48:15 model_runner.py:1097] Loading model weights took 13.4966 GB\n",
            at="line 1: Loading model weights took",
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "INFO 11-30 03:43:16 [x.py:1] GPU KV cache size: 46,592 tokens\n"
        ),
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(APIServer pid=1) INFO:     Application startup complete.\n"
        ),
    ),
)
