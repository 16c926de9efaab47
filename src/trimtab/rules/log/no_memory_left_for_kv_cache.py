"""After weights and profile run nothing is left for the KV cache.

What it does: recognises vLLM's refusal of zero or negative blocks in all versions.
Why it matters: vLLM stops: its share of the card is used up by weights and activations, whatever the context.
How to fix: where the share is low, a higher --gpu-memory-utilization helps: this is the one failure where it does.
    Else lower --max-num-batched-tokens (V0: --max-model-len), take more cards or a smaller checkpoint.
When to ignore: never; the server did not start.
Sources: vllm/v1/core/kv_cache_utils.py, vLLM 0.26; vllm/worker/worker.py (raise_if_cache_size_invalid), vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.command.memory import advice, fix_to
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.log.fixes import largest_that_fits, remove_flag, utilization
from trimtab.rules.rule import Example, Finding, Rule, Severity

HELP = msg(
    "raise --gpu-memory-utilization if it is below 0.9, else lower --max-num-batched-tokens or take more cards",
    zh="若 --gpu-memory-utilization 低于 0.9 请提高，否则降低 --max-num-batched-tokens 或增加显卡",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"No available memory for the cache blocks(?!.*VLLM_CPU_KVCACHE_SPACE)",
        r"^AssertionError: assert .*\bnum_gpu_blocks > 0|Insufficient GPU memory for KV cache",
        r"not enough GPU memory available to serve even a single token",
        r"# (?:GPU|CUDA|cuda|gpu) blocks: 0,",
        r"Available KV cache memory: (?P<negative>-[\d.]+) GiB",
        kinds=(*TROUBLE, EntryKind.NOTE),
    )
    if hit is None or (hit.entry.kind is EntryKind.NOTE and not context.failed):
        return
    given = context.facts.args.get("kv_cache_memory_bytes")
    if isinstance(given, int) and hit.entry.kind is not EntryKind.NOTE:
        message = msg(
            "--kv-cache-memory-bytes {given:,} holds not one block: give more, or drop it to let vLLM measure",
            zh="--kv-cache-memory-bytes {given:,} 容不下一个块：请提高它，或去掉它让 vLLM 自行测量",
            given=given,
        )
        yield context.finding(hit, message, SURE, fix=remove_flag(context, "kv-cache-memory-bytes"))
        return
    fitting = largest_that_fits(context, "gpu_memory_utilization", "max_num_batched_tokens", "max_model_len")
    share, weights = utilization(context), context.facts.numbers.get("weights_gib")
    yield context.finding(
        hit,
        msg(
            "nothing is left for the KV cache: weights take {weights} GiB and --gpu-memory-utilization is "
            "{share}; {advice}",
            zh="没有显存留给 KV 缓存：权重占 {weights} GiB，--gpu-memory-utilization 为 {share}；{advice}",
            weights=weights if weights is not None else "?",
            share=share if share is not None else "?",
            advice=advice(fitting) if fitting else HELP,
        ),
        SURE,
        fix=fix_to(context.launch, fitting) if context.launch else None,
    )


RULE = Rule(
    code="LOG008",
    name="no-memory-left-for-kv-cache",
    severity=Severity.ERROR,
    summary=msg(
        "After weights and profile run nothing is left for the KV cache.",
        zh="加载权重和试运行之后，没有显存可分给 KV 缓存。",
    ),
    check=check,
    cause=Cause.NO_KV_BLOCKS,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/core/kv_cache_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py",
    ),
    bad=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: No available memory for the "
            "cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
            at="line 2: ValueError: No available memory",
        ),
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.32.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': '/models/demo', "
            "'kv_cache_memory_bytes': 1024}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: No available memory for the "
            "cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
            at="line 3: ValueError: No available memory",
            fixed="vllm serve /models/demo",
        ),
        Example(
            "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a "
            "single token. Try increasing `gpu_memory_utilization`.\n"
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
        ),
    ),
)
