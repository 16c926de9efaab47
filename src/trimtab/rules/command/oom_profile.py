"""The profile run before the KV cache is made needs more than the card has.

What it does: adds weights, context and the activation peak of vLLM's profile run, which takes a full batch of
    --max-num-batched-tokens tokens, the logits of --max-num-seqs sequences and the encoder's largest item.
Why it matters: vLLM dies of "CUDA out of memory" before it serves anything. V0 without chunked prefill profiles one
    prompt of --max-model-len tokens, so a long context alone is enough.
How to fix: lower the flag named in the message; it is the largest value that fits.
When to ignore: when --gpu names other cards than the launch will see.
Sources: vllm/v1/worker/gpu_model_runner.py (profile_run), vLLM 0.26; vllm/worker/model_runner.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import advice, blamed, fix_to, hedged, remedy
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for blame in blamed(context, "oom-profile"):
        rank = max(blame.report.ranks, key=lambda r: r.weights.value + r.activation.value)
        found = remedy(blame.case, blame.report, "max_num_batched_tokens", "max_model_len", "max_num_seqs")
        yield Finding(
            msg(
                "the profile run needs {activation:.1f} GiB beside {weights:.1f} GiB of weights, more than the "
                "{total:.1f} GiB of {card}; {advice}",
                zh="试运行需要 {activation:.1f} GiB，权重 {weights:.1f} GiB，超过 {card} 的 {total:.1f} GiB；{advice}",
                activation=rank.activation.value,
                weights=rank.weights.value,
                total=rank.card.total_gib,
                card=rank.card.name,
                advice=advice(found),
            ),
            context.place("max-num-batched-tokens", "max-model-len", "max-num-seqs"),
            fix_to(context, found),
            severity=hedged(blame.report),
        )


RULE = Rule(
    code="CMD502",
    name="oom-profile",
    severity=Severity.ERROR,
    summary=msg(
        "The profile run before the KV cache is made needs more than the card has.",
        zh="分配 KV 缓存之前的试运行超过显存。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/model_runner.py",
    ),
    bad=(
        Example(
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --no-enable-chunked-prefill\n",
            at="131072",
            fixed="vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16384 --no-enable-chunked-prefill\n",
            vllm="0.26.0",
            gpu="L4",
            model="llama-3.1-8b",
        ),
    ),
    good=(
        Example(
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768\n",
            vllm="0.26.0",
            gpu="L4",
            model="llama-3.1-8b",
        ),
    ),
)
