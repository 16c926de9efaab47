"""The KV cache itself cannot be allocated.

What it does: recognises an allocation that failed while the KV cache was made, before graphs are captured.
Why it matters: --kv-cache-memory-bytes takes the place of what vLLM measures, and is believed; without it, another
    process took memory after the profile run.
How to fix: take --kv-cache-memory-bytes out, so that vLLM measures, or give fewer bytes; without it, lower
    --gpu-memory-utilization to the share named or end the other process.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_worker.py (determine_available_memory), vllm/v1/worker/gpu_model_runner.py and
    gpu/attn_utils.py (_allocate_kv_cache), vLLM 0.26; vllm/worker/cache_engine.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import lower_utilization, remove_flag, set_flag
from trimtab.rules.log.oom import Stage, shortage
from trimtab.rules.rule import Example, Finding, Rule, Severity

GIB = 1 << 30


def check(context: LogContext) -> Iterator[Finding]:
    found = shortage(context)
    if found is None or found.stage is not Stage.KV_CACHE:
        return
    given = context.facts.args.get("kv_cache_memory_bytes")
    if isinstance(given, int | float):
        said = msg(
            "--kv-cache-memory-bytes asks for {gib:.1f} GiB, which the card does not have beside the model: {words}; "
            "take it out and vLLM measures what there is",
            zh="--kv-cache-memory-bytes 要求 {gib:.1f} GiB，模型之外的显存不够：{words}；去掉它，由 vLLM 自行测量",
            gib=given / GIB,
            words=found.words,
        )
        yield context.finding(found.hit, said, SURE, fix=remove_flag(context, "kv-cache-memory-bytes"))
        return
    share = lower_utilization(context, found.lacking_gib, found.total_gib)
    said = msg(
        "the KV cache that the profile run allowed no longer fits: {words}; another process took memory meanwhile",
        zh="试运行时算出的 KV 缓存已放不下：{words}；其间有其他进程占用了显存",
        words=found.words,
    )
    yield context.finding(
        found.hit, said, SURE, fix=set_flag(context, "gpu-memory-utilization", share) if share else None
    )


RULE = Rule(
    code="LOG013",
    name="kv-cache-above-free-memory",
    severity=Severity.ERROR,
    summary=msg("The KV cache itself cannot be allocated.", zh="KV 缓存本身无法分配。"),
    check=check,
    cause=Cause.OOM_KV_CACHE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu/attn_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'kv_cache_memory_bytes': 171798691840}\n"
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.99 GiB "
            "and 1.713532 seconds\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu/attn_utils.py", line 186, in _allocate_kv_cache\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total "
            "capacity of 139.80 GiB of which 4.08 GiB is free.\n",
            at="line 6: torch.OutOfMemoryError",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct",
        ),
        Example(
            "Traceback (most recent call last):\n"
            '  File "vllm/worker/cache_engine.py", line 79, in _allocate_kv_cache\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 148.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 97.25 MiB is free.\n"
        ),
    ),
    good=(
        Example(
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in capture_model\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 148.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 97.25 MiB is free.\n"
        ),
    ),
)
