"""The weights of one rank are more than the card holds.

What it does: recognises an allocation that failed while weights were read, made or converted, by the traceback or by
    what the log said last before it.
Why it matters: No flag of the KV cache helps: nothing but the weights is on the card yet. --gpu-memory-utilization
    and --max-model-len change nothing here.
How to fix: spread the weights over more cards (--tensor-parallel-size), take a quantised checkpoint, or a card with
    more memory. Do not raise --gpu-memory-utilization: it does not limit the loading.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_model_runner.py (load_model), vLLM 0.26; vllm/worker/worker.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, POSSIBLE, LogContext
from trimtab.rules.log.fixes import wider
from trimtab.rules.log.oom import Stage, shortage
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    found = shortage(context)
    if found is None or found.stage not in (Stage.LOADING, Stage.UNKNOWN):
        return
    yield context.finding(
        found.hit,
        msg(
            "the card ran out of memory while the weights were loaded: {words}; more cards or a quantised "
            "checkpoint help, "
            "flags of the KV cache do not",
            zh="加载权重时显存用尽：{words}；需要更多显卡或量化的模型，KV 缓存的参数没有作用",
            words=found.words,
        ),
        LIKELY if found.stage is Stage.LOADING else POSSIBLE,
        fix=wider(context),
    )


RULE = Rule(
    code="LOG003",
    name="out-of-memory-while-loading",
    severity=Severity.ERROR,
    summary=msg("The weights of one rank are more than the card holds.", zh="单个进程的权重超过显卡容量。"),
    check=check,
    cause=Cause.OOM_WEIGHTS,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory/",
    ),
    bad=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_model_runner.py", line 1, in load_model\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 118.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 41.31 MiB is free.\n",
            at="line 4: torch.OutOfMemoryError",
        ),
        Example(
            "Exception in worker VllmWorkerProcess while processing method load_model.\n"
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 34.00 MiB (GPU 0; 15.61 "
            "GiB total capacity; 14.1 GiB already allocated; 5.12 MiB free; 14.2 GiB reserved in total "
            "by PyTorch)\n"
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
        ),
    ),
)
