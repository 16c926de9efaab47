"""CUDA graphs find no memory beside the KV cache.

What it does: recognises an allocation that failed while graphs were captured or kernels warmed up, after the KV cache
    took its share.
Why it matters: Graphs (up to some GiB with many sizes) are allocated beside --gpu-memory-utilization in most
    versions. A higher share makes it worse.
How to fix: lower --gpu-memory-utilization to the share named (where --kv-cache-memory-bytes is given, those instead),
    or capture fewer sizes with a lower --max-num-seqs; --enforce-eager takes no graphs and decodes more slowly. Do not
    raise --gpu-memory-utilization.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_model_runner.py (capture_model), vLLM 0.26; vllm/worker/model_runner.py, vLLM 0.6.6.
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
    if found is None or found.stage is not Stage.CAPTURE:
        return
    advice, fix = take_less(context, found.lacking_gib, found.total_gib)
    message = msg(
        "the card ran out of memory after the KV cache took its share: {words}; {advice}",
        zh="KV 缓存分配之后显存用尽：{words}；{advice}",
        words=found.words,
        advice=advice,
    )
    yield context.finding(found.hit, message, LIKELY, fix=fix)


RULE = Rule(
    code="LOG006",
    name="out-of-memory-in-graph-capture",
    severity=Severity.ERROR,
    summary=msg("CUDA graphs find no memory beside the KV cache.", zh="KV 缓存占满之后，CUDA graph 没有显存可用。"),
    check=check,
    cause=Cause.OOM_GRAPH_CAPTURE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/model_runner.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'gpu_memory_utilization': 0.98}\n"
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in capture_model\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 148.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 97.25 MiB is free.\n",
            at="line 7: torch.OutOfMemoryError",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --gpu-memory-utilization 0.95",
        ),
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'kv_cache_memory_bytes': 30064771072}\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 146,592 tokens\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in capture_model\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 148.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 97.25 MiB is free.\n",
            at="line 6: torch.OutOfMemoryError",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --kv-cache-memory-bytes 29474684928",
        ),
        Example(
            "Capturing CUDA graph shapes:  60%|######    | 21/35\n"
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 3 has a total "
            "capacity of 47.38 GiB of which 512.00 KiB is free.\n"
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
            "Capturing CUDA graphs (FULL): 100%|##########| 51/51 [00:01<00:00, 30.71it/s]\n"
        ),
    ),
)
