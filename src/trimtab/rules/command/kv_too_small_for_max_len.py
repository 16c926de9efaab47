"""The KV cache that fits does not hold one request of --max-model-len tokens.

What it does: predicts the KV cache of each rank and compares it with what one request of the full length needs, as
    that version counts it (by groups and padded pages in hybrids, over the whole model under pipelines of 0.14-0.16).
Why it matters: vLLM refuses to start ("KV cache is needed, which is larger than the available KV cache memory").
How to fix: give the length named in the message; it is the longest that fits.
When to ignore: with --max-model-len auto, where vLLM takes the longest that fits by itself.
Sources: vllm/v1/core/kv_cache_utils.py (check_enough_kv_cache_memory), vLLM 0.26; vllm/worker/worker.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.memory import Remedy, advice, blamed, fix_to, hedged, remedy
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.get("max-model-len") in ("-1", "auto"):
        return
    for blame in blamed(context, "kv-too-small-for-max-len"):
        report = blame.report
        found = remedy(blame.case, report, "max_model_len")
        longest = report.capacity.longest_len // 16 * 16
        if longest and blame.case.budget(max_model_len=longest).verdict == "fits":
            found = Remedy("max-model-len", longest)
        yield Finding(
            msg(
                "one request of {length:,} tokens needs {need:.2f} GiB of KV cache; {have:.2f} GiB are left on "
                "{card}; {advice}",
                zh="{length:,} 个 token 的请求需要 {need:.2f} GiB KV 缓存；{card} 只剩 {have:.2f} GiB；{advice}",
                length=report.settings.max_model_len,
                need=report.capacity.needed_bytes / (1 << 30),
                have=report.tightest.kv_cache.value,
                card=report.tightest.card.name,
                advice=advice(found),
            ),
            context.place("max-model-len"),
            fix_to(context, found),
            severity=hedged(report),
        )


RULE = Rule(
    code="CMD504",
    name="kv-too-small-for-max-len",
    severity=Severity.ERROR,
    summary=msg(
        "The KV cache that fits does not hold one request of --max-model-len tokens.",
        zh="能分到的 KV 缓存放不下一个 --max-model-len 长度的请求。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/core/kv_cache_utils.py",),
    bad=(
        Example(
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --kv-cache-memory-bytes 4G\n",
            at="131072",
            fixed="vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --kv-cache-memory-bytes 4G\n",
            vllm="0.26.0",
            gpu="A10",
            model="llama-3.1-8b",
        ),
    ),
    good=(
        Example(
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192\n",
            vllm="0.26.0",
            gpu="A10",
            model="llama-3.1-8b",
        ),
    ),
)
