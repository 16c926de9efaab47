"""A KV cache dtype that these GPUs cannot hold.

What it does: says when --kv-cache-dtype nvfp4 is asked for outside Blackwell's data-centre family (10.x), and when
    the Triton attention back end is asked for an fp8 cache below 8.9 or a bfloat16 one below 8.0.
Why it matters: no attention back end takes it, or Triton's refuses: "FP8 KV cache is not supported by the Triton
    attention backend".
How to fix: leave --kv-cache-dtype auto, or take a dtype in the message.
When to ignore: never; the checks are vLLM's own.
Sources: vllm/v1/attention/backends/flashinfer.py (supports_kv_cache_dtype) and triton_attn.py (__init__), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("kv-cache-dtype")
    if use is None or use.value is None or not _bounded(context, use.value):
        return
    capability = context.require_capability()
    if capability is None or _fits(use.value, capability):
        return
    yield Finding(
        msg(
            "{gpu} (compute capability {major}.{minor}) cannot hold its KV cache in {dtype} here",
            zh="{gpu}（计算能力 {major}.{minor}）在此无法使用 {dtype} 的 KV 缓存",
            gpu=context.require_gpus().gpu.name,
            major=capability[0],
            minor=capability[1],
            dtype=use.value,
        ),
        use.value_span or use.span,
        context.set_value(use, "auto", Grade.UNSAFE),
    )


def _bounded(context: CommandContext, dtype: str) -> bool:
    if dtype == "nvfp4":
        return True
    return context.command.get("attention-backend") == "TRITON_ATTN" and (
        dtype.startswith("fp8") or dtype == "bfloat16"
    )


def _fits(dtype: str, capability: tuple[int, int]) -> bool:
    if dtype == "nvfp4":
        return capability[0] == 10
    return capability >= ((8, 0) if dtype == "bfloat16" else (8, 9))


RULE = Rule(
    code="CMD204",
    name="kv-cache-dtype-beyond-compute-capability",
    severity=Severity.ERROR,
    summary=msg("A KV cache dtype that these GPUs cannot hold.", zh="显卡不支持该 KV 缓存数据类型。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/attention/backends/triton_attn.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/attention/backends/flashinfer.py",
    ),
    since="0.26",
    until="0.26",
    bad=(
        Example(
            "vllm serve m --kv-cache-dtype nvfp4\n",
            at="nvfp4",
            fixed="vllm serve m --kv-cache-dtype auto\n",
            vllm="0.26.0",
            gpu="H100-80",
        ),
    ),
    good=(
        Example("vllm serve m --kv-cache-dtype nvfp4\n", vllm="0.26.0", gpu="B200"),
        Example("vllm serve m --kv-cache-dtype fp8\n", vllm="0.26.0", gpu="A10"),
    ),
)
