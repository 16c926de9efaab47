"""--max-num-batched-tokens alone makes the launch run out of memory.

What it does: predicts the memory with the batched tokens given and with this card's default, and speaks when only the
    default starts.
Why it matters: the activation peak grows almost in step with the batched tokens (Qwen2.5-7B on an H200, vLLM 0.26:
    0.30 GiB at 2,048, 1.12 at 8,192, 4.38 at 32,768) and is taken from the KV cache.
How to fix: take the number in the message, the largest that fits.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/v1/worker/gpu_model_runner.py (profile_run), vLLM 0.26; measured with 0.26 on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import advice, blamed, fix_to, remedy
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "batched-tokens-too-large"):
        found = remedy(blame.case, blame.report, "max_num_batched_tokens")
        rank = max(blame.report.ranks, key=lambda r: r.activation.value)
        yield Finding(
            msg(
                "{tokens:,} batched tokens take {peak:.1f} GiB of activations on {card} beside {weights:.1f} GiB of "
                "weights; {advice}",
                zh="批处理 {tokens:,} 个 token 在 {card} 上需要 {peak:.1f} GiB 激活显存，"
                "权重 {weights:.1f} GiB；{advice}",
                tokens=blame.report.settings.max_num_batched_tokens,
                peak=rank.activation.value,
                card=rank.card.name,
                weights=rank.weights.value,
                advice=advice(found),
            ),
            context.place("max-num-batched-tokens"),
            fix_to(context, found),
            severity=Severity.WARNING if blame.report.verdict == "unsafe_headroom" else None,
        )


RULE = Rule(
    code="CMD513",
    name="batched-tokens-too-large",
    severity=Severity.ERROR,
    summary=msg(
        "--max-num-batched-tokens alone makes the launch run out of memory.",
        zh="--max-num-batched-tokens 过大，单独就会耗尽显存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",),
    bad=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-batched-tokens 131072\n",
            at="131072",
            fixed="vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-batched-tokens 24576\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
    good=(
        Example(
            "vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-batched-tokens 8192\n",
            vllm="0.26.0",
            gpu="A10",
            model="qwen2.5-7b",
        ),
    ),
)
