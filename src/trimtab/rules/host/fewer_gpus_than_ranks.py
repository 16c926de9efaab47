"""The launch takes more cards than this host shows.

What it does: compares the ranks that the command starts here with the cards that the driver shows.
Why it matters: vLLM stops at once, or waits for a node that never comes.
How to fix: lower the parallel sizes, or run it on a host that has the cards.
When to ignore: where Ray places ranks on other hosts.
Sources: vllm/config/parallel.py and vllm/v1/executor/multiproc_executor.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    if record.on_gpu and record.cards and record.wanted.cards > len(record.cards):
        yield Finding(
            msg(
                "the launch takes {need} cards; this host shows {have}",
                zh="启动需要 {need} 块卡；本机可见 {have} 块",
                need=record.wanted.cards,
                have=len(record.cards),
            )
        )


RULE = Rule(
    code="HST012",
    name="fewer-gpus-than-ranks",
    severity=Severity.ERROR,
    summary=msg(
        "The launch takes more cards than this host shows.",
        zh="启动命令需要的卡多于本机可见的卡。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/config/parallel.py",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": '
            '23300197580}], "wanted": {"cards": 4, "ranks": 4}}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": '
            '23300197580}], "wanted": {"cards": 1}}\n',
        ),
    ),
)
