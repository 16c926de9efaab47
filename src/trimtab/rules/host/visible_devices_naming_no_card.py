"""CUDA_VISIBLE_DEVICES names a card that is not there, or none at all.

What it does: reads CUDA_VISIBLE_DEVICES as CUDA does: a list that ends at the first entry that names no card.
Why it matters: CUDA drops that entry and all after it without a word; vLLM then counts too few cards, or none.
How to fix: name cards that nvidia-smi -L lists, or unset the variable: trimtab up sets it to the cards it takes.
When to ignore: on a CPU, where an empty value is a way to hide the cards.
Sources: CUDA C++ Programming Guide, environment variables (CUDA_VISIBLE_DEVICES).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.host import HostRecord
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def _names_a_card(entry: str, record: HostRecord) -> bool:
    if entry.isdecimal():
        return any(card.index == int(entry) for card in record.cards)
    if entry.startswith("MIG-"):
        return any(card.mig for card in record.cards)
    return entry.startswith("GPU-") and any(card.uuid.startswith(entry) for card in record.cards)


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    value = record.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or not record.cards or not record.on_gpu:
        return
    entries = [entry.strip() for entry in value.split(",")]
    wrong = next((entry for entry in entries if not _names_a_card(entry, record)), None)
    if wrong is None and len(set(entries)) == len(entries):
        return
    kept = entries.index(wrong) if wrong is not None else 0
    yield Finding(
        msg(
            "CUDA_VISIBLE_DEVICES={value} leaves {kept} of this host's {all} cards visible: {entry} names none",
            zh="CUDA_VISIBLE_DEVICES={value} 使本机 {all} 块卡中只有 {kept} 块可见：{entry} 不是任何一块卡",
            value=repr(value),
            kept=kept,
            all=len(record.cards),
            entry=repr(wrong),
        )
        if wrong is not None
        else msg(
            "CUDA_VISIBLE_DEVICES={value} names a card twice, which CUDA refuses: no card is visible",
            zh="CUDA_VISIBLE_DEVICES={value} 重复指定了同一块卡，CUDA 会拒绝：没有可见的卡",
            value=repr(value),
        )
    )


RULE = Rule(
    code="HST007",
    name="visible-devices-naming-no-card",
    severity=Severity.ERROR,
    summary=msg(
        "CUDA_VISIBLE_DEVICES names a card that is not there, or none at all.",
        zh="CUDA_VISIBLE_DEVICES 指定了不存在的卡，或一块卡也没有指定。",
    ),
    check=check,
    sources=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/",),
    bad=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uuid": "GPU-aa"}], "environ": {"CUDA_VISIBLE_DEVICES": "3"}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uuid": "GPU-aa"}], "environ": {"CUDA_VISIBLE_DEVICES": "0,0"}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uuid": "GPU-aa"}], "environ": {"CUDA_VISIBLE_DEVICES": ""}}\n',
        ),
    ),
    good=(
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uuid": "GPU-aa"}], "environ": {"CUDA_VISIBLE_DEVICES": "0"}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580, '
            '"uuid": "GPU-aa12"}], "environ": {"CUDA_VISIBLE_DEVICES": "GPU-aa"}}\n',
        ),
        Example(
            '{"cards": [{"index": 0, "name": "NVIDIA A10", "total_bytes": 23686744637, "free_bytes": 23300197580}]}\n',
        ),
    ),
)
