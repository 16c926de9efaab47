"""CUDA_VISIBLE_DEVICES names a device by its UUID, which this version of vLLM reads as a number.

What it does: up to vLLM 0.23, looks for MIG- and GPU- identifiers in CUDA_VISIBLE_DEVICES.
Why it matters: vLLM dies with "invalid literal for int()", at times hidden behind "failed to be inspected".
How to fix: write the device's index, give the container that one device alone, or take vLLM 0.24 or newer.
When to ignore: never; the conversion stops the start.
Sources: vllm/platforms/interface.py and cuda.py (device_id_to_physical_device_id), 0.5 to 0.24; issues 41848, 46132.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.env.get("CUDA_VISIBLE_DEVICES")
    if use is None or use.value is None or not use.value.strip("\"'").startswith(("MIG-", "GPU-")):
        return
    yield Finding(
        msg(
            "{vllm} reads CUDA_VISIBLE_DEVICES as numbers and dies at {value}",
            zh="{vllm} 把 CUDA_VISIBLE_DEVICES 当作数字读取，遇到 {value} 会崩溃",
            vllm=words.vllm(context),
            value=use.value.split(",")[0],
        ),
        use.span,
    )


RULE = Rule(
    code="CMD704",
    name="device-uuid-not-understood",
    severity=Severity.ERROR,
    summary=msg("vLLM reads the device's UUID as a number.", zh="vLLM 把设备的 UUID 当作数字读取。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.23.0/vllm/platforms/interface.py",
        "https://github.com/vllm-project/vllm/issues/41848",
        "https://github.com/vllm-project/vllm/issues/46132",
    ),
    bad=(
        Example(
            "CUDA_VISIBLE_DEVICES=MIG-11111111-2222-3333-4444-555555555555 vllm serve m\n",
            at="CUDA_VISIBLE_DEVICES=MIG-11111111-2222-3333-4444-555555555555",
            vllm="0.20",
        ),
        Example("CUDA_VISIBLE_DEVICES=GPU-1a2b vllm serve m\n", at="CUDA_VISIBLE_DEVICES=GPU-1a2b", vllm="0.10"),
    ),
    good=(
        Example("CUDA_VISIBLE_DEVICES=0 vllm serve m\n", vllm="0.20"),
        Example("CUDA_VISIBLE_DEVICES=GPU-1a2b vllm serve m\n", vllm="0.24"),
    ),
    since="0.5",
    until="0.23",
)
