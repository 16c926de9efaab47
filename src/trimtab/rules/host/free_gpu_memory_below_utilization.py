"""Other processes hold GPU memory that --gpu-memory-utilization asks for.

What it does: compares utilisation x the card's memory with what is free on the emptiest cards that the launch
    takes.
Why it matters: vLLM measures the free memory first and refuses to start ("Free memory on device ... is less than
    desired GPU memory utilization").
How to fix: end the process that holds it, take other cards (--devices), or lower the utilisation to the value in
    the message.
When to ignore: when the process that holds the memory ends before vLLM starts.
Sources: vllm/v1/worker/utils.py (request_memory), vLLM 0.33; vllm/v1/worker/gpu_worker.py (init_device), vLLM 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import GIB
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    util = record.wanted.utilization
    if util is None or not record.on_gpu:
        return
    named = record.wanted.devices
    chosen = [card for card in record.cards if not named or str(card.index) in named or card.uuid in named]
    if record.wanted.cards:
        chosen = sorted(chosen, key=lambda card: -card.free_bytes)[: record.wanted.cards]
    for card in chosen:
        if card.mig or card.free_bytes >= util * card.total_bytes:
            continue
        held = ", ".join(holder.words for holder in card.holders)
        yield Finding(
            msg(
                "card {index} ({name}) has {free:.1f} of {total:.1f} GiB free; utilization {util:g} asks for "
                "{need:.1f}; "
                "held by {held}; the highest that fits is {fits:.2f}",
                zh="第 {index} 号卡（{name}）{total:.1f} GiB 中有 {free:.1f} GiB 空闲；利用率 {util:g} 要求 "
                "{need:.1f} GiB；占用者：{held}；"
                "可用的最高值是 {fits:.2f}",
                index=card.index,
                name=card.name,
                free=card.free_bytes / GIB,
                total=card.total_bytes / GIB,
                util=util,
                need=util * card.total_bytes / GIB,
                held=held or msg("processes that the driver does not show here", zh="驱动在这里不显示的进程"),
                fits=int(card.free_bytes / card.total_bytes * 100) / 100,
            ),
            severity=None if record.wanted.cards else Severity.WARNING,
        )


RULE = Rule(
    code="HST001",
    name="free-gpu-memory-below-utilization",
    severity=Severity.ERROR,
    summary=msg(
        "Other processes hold GPU memory that --gpu-memory-utilization asks for.",
        zh="别的进程占用了 --gpu-memory-utilization 要求的显存。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/worker/utils.py",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 2147483648, '
            '"holders": [{"pid": 4711, "command": "python", "used_bytes": 20401094656}]}], "wanted": {"cards": 1, '
            '"utilization": 0.9}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 2147483648}], '
            '"wanted": {"utilization": 0.92}}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "total_bytes": 100, "free_bytes": 9}, {"index": 1, "total_bytes": 100, '
            '"free_bytes": 99}], "wanted": {"cards": 2, "devices": ["1"], "utilization": 0.9}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": '
            '23300197580}], "wanted": {"cards": 1, "utilization": 0.9}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 2147483648}, '
            '{"index": 1, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580}], "wanted": '
            '{"cards": 1, "utilization": 0.9}}\n',
        ),
    ),
)
