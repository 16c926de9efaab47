"""bfloat16 on a GPU that has none.

What it does: compares the dtype (--dtype bfloat16, or up to 0.8.5 the checkpoint's own under auto) with the compute
    capability of the GPUs; below 8.0 (Volta, Turing) there is no bfloat16.
Why it matters: vLLM refuses to start: "Bfloat16 is only supported on GPUs with compute capability of at least 8.0".
How to fix: write --dtype half; float32 for models that go wrong in 16 bits, such as Gemma 2 and 3.
When to ignore: never on CUDA; the check is vLLM's own. From 0.9.2 on `auto` falls back by itself.
Sources: vllm/worker/worker.py (_check_if_gpu_supports_dtype), vLLM 0.4.2 to 0.8.5; vllm/platforms/cuda.py
    (check_if_supports_dtype), vLLM 0.12 and 0.33; vllm/config.py (_resolve_auto_dtype), 0.9.2 and 0.10.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.plan.dtypes import FLOAT32_INSTEAD
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

AUTO_FAILS_UP_TO = "0.8.6"


def check(context: CommandContext) -> Iterator[Finding]:
    asked = context.command.get("dtype") or "auto"
    if asked not in ("bfloat16", "auto") or (asked == "auto" and context.at_least(AUTO_FAILS_UP_TO)):
        return
    if asked == "auto" and (context.require_config().dtype != "bfloat16" or _dtype_assumed(context)):
        return
    capability = context.require_capability()
    if capability is None or capability >= (8, 0):
        return
    unfit = context.model is not None and context.model.model_type in FLOAT32_INSTEAD
    yield Finding(
        msg(
            "{gpu} has compute capability {major}.{minor}; bfloat16 needs 8.0",
            zh="{gpu} 的计算能力为 {major}.{minor}；bfloat16 需要 8.0",
            gpu=context.require_gpus().gpu.name,
            major=capability[0],
            minor=capability[1],
        ),
        context.place("dtype"),
        context.set_flag("dtype", "float32" if unfit else "half"),
    )


def _dtype_assumed(context: CommandContext) -> bool:
    return any(a.startswith("dtype") for a in context.require_config().assumed)


RULE = Rule(
    code="CMD201",
    name="bfloat16-below-capability-8",
    severity=Severity.ERROR,
    summary=msg("bfloat16 on a GPU that has none.", zh="显卡不支持 bfloat16。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/platforms/cuda.py",
        "https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/worker/worker.py",
    ),
    bad=(
        Example("vllm serve m --dtype bfloat16\n", at="bfloat16", fixed="vllm serve m --dtype half\n", gpu="T4"),
        Example(
            "vllm serve m --port 8001\n",
            at="m",
            fixed="vllm serve m --port 8001 --dtype half\n",
            vllm="0.6.6",
            gpu="2xV100",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example("vllm serve m --dtype bfloat16\n", gpu="A10"),
        Example("vllm serve m\n", vllm="0.26.0", gpu="T4", model="qwen2.5-7b"),
    ),
)
