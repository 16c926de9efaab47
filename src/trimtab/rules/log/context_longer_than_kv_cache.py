"""The KV cache does not hold one request of --max-model-len tokens.

What it does: reads need and room from vLLM's refusal, in V0's words (tokens) and V1's (GiB), and the longest context
    that vLLM reckons.
Why it matters: vLLM stops. The context is often the model's own default of 128k or more, which nobody asked for.
How to fix: give the --max-model-len named: vLLM measured it. Or --kv-cache-dtype fp8, which halves the need, or more
    cards. On V0 below 32k a shorter context may leave less: the profile run then takes one whole prompt;
    --enable-chunked-prefill helps there.
When to ignore: never; the server did not start.
Sources: vllm/v1/core/kv_cache_utils.py (check_enough_kv_cache_memory), vLLM 0.26; vllm/worker/worker.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

V1 = (
    r"max seq len \((?P<length>\d+)\),? \(?(?P<need>[\d.]+) G[iB]+ (?:of )?KV ?cache is needed, which is "
    r"larger than the "
    r"available KV cache memory \((?P<have>-?[\d.]+) G[iB]+\)"
)
V0 = (
    r"max seq len \((?P<length>\d+)\) is larger than the maximum number of tokens that can be stored in KV cache "
    r"\((?P<tokens>\d+)\)"
)
SHORTER = msg("give a shorter --max-model-len", zh="请缩短 --max-model-len")


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(V1, V0)
    if hit is None:
        return
    longest = context.first(r"estimated maximum model length is (?P<tokens>[\d,]+)")
    tokens = int(
        longest.number("tokens") if longest else hit.number("tokens") if "tokens" in hit.match.groupdict() else 0
    )
    fits = tokens // 16 * 16
    yield context.finding(
        [hit, *([longest] if longest and longest.entry != hit.entry else [])],
        msg(
            "one request of {length} tokens needs {need} and the KV cache holds {have}; {advice}",
            zh="{length} 个 token 的请求需要 {need}，KV 缓存只有 {have}；{advice}",
            length=hit["length"],
            need=f"{hit['need']} GiB" if "need" in hit.match.groupdict() else f"{hit['length']} tokens",
            have=f"{hit['have']} GiB" if "have" in hit.match.groupdict() else f"{hit['tokens']} tokens",
            advice=msg("--max-model-len {fits} fits", zh="--max-model-len {fits} 可以放下", fits=fits)
            if fits
            else SHORTER,
        ),
        SURE,
        fix=set_flag(context, "max-model-len", str(fits)) if fits else None,
    )


RULE = Rule(
    code="LOG009",
    name="context-longer-than-kv-cache",
    severity=Severity.ERROR,
    summary=msg(
        "The KV cache does not hold one request of --max-model-len tokens.",
        zh="KV 缓存放不下一个 --max-model-len 长度的请求。",
    ),
    check=check,
    cause=Cause.KV_TOO_SMALL_FOR_CONTEXT,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/core/kv_cache_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: To serve at least one "
            "request with the model's max seq len (131072), 16.0 GiB KV cache is needed, which is larger "
            "than the available KV cache memory (2.87 GiB). Based on the available memory, the estimated "
            "maximum model length is 26050. Try increasing `gpu_memory_utilization` or decreasing "
            "`max_model_len` when initializing the engine.\n",
            at="line 3: ValueError: To serve at least one request",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --max-model-len 26048",
        ),
        Example(
            "ValueError: The model's max seq len (27500) is larger than the maximum number of tokens "
            "that can be stored in KV cache (21712). Try increasing `gpu_memory_utilization` or "
            "decreasing `max_model_len` when initializing the engine.\n"
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
        ),
        Example("INFO 11-30 03:43:16 [x.py:1] Maximum concurrency for 27500 tokens per request: 1.82x\n"),
    ),
)
