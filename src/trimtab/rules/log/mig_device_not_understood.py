"""A MIG slice or UUID in CUDA_VISIBLE_DEVICES is not understood.

What it does: recognises the failed conversion of a UUID to a number.
Why it matters: vLLM counts devices by number in several places; a UUID fails there, often as "architectures failed to
    be inspected".
How to fix: give the slice by number (CUDA_VISIBLE_DEVICES=0 inside the container), or a vLLM that takes UUIDs. The
    model is supported: do not look for another one.
When to ignore: never; the server cannot work like this.
Sources: vllm/platforms/interface.py (device_id_to_physical_device_id), vLLM 0.10 to 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"invalid literal for int\(\) with base 10: ['\"]?(?P<id>(?:MIG|GPU)-[\w/-]*)",
        r"Non-integer device ID ['\"]?(?P<id>(?:MIG|GPU)-[\w/-]*)",
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "vLLM wants device numbers and CUDA_VISIBLE_DEVICES holds {kind}-...: give the number inside the "
            "container, such as 0",
            zh="vLLM 需要设备编号，而 CUDA_VISIBLE_DEVICES 是 {kind}-...：请改为容器内的编号，例如 0",
            kind=hit["id"].partition("-")[0],
        ),
        SURE,
    )


RULE = Rule(
    code="LOG121",
    name="mig-device-not-understood",
    severity=Severity.ERROR,
    summary=msg(
        "A MIG slice or UUID in CUDA_VISIBLE_DEVICES is not understood.",
        zh="CUDA_VISIBLE_DEVICES 中的 MIG 实例或 UUID 无法识别。",
    ),
    check=check,
    cause=Cause.MIG_DEVICE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/platforms/interface.py",),
    bad=(
        Example(
            "ValueError: invalid literal for int() with base 10: 'MIG-0a1b2c3d-1111-2222-3333-444455556666'\n",
            at="line 1: ValueError: invalid literal",
        ),
    ),
    good=(Example("ValueError: invalid literal for int() with base 10: 'many'\n"),),
)
