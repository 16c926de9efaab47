"""The card is older than this vLLM is built for.

What it does: compares the lowest compute capability of the GPUs with the lowest that this release's CUDA wheels and
    images are built for: 7.0 up to 0.19, 7.5 from 0.20 on.
Why it matters: the kernels are not in the wheel. The first one that is started ends the server: "no kernel image is
    available for execution on the device".
How to fix: use the newest release that is built for the card (0.19 for V100), or newer cards.
When to ignore: with a vLLM, and a PyTorch, that you built yourself for the card. Where nobody names a version the rule
    is silent.
Sources: docs/getting_started/installation/gpu.cuda.inc.md and docker/Dockerfile (torch_cuda_arch_list) of 0.19.0,
    0.20.0, 0.26.0 and 0.33.0; CMakeLists.txt (CUDA_SUPPORTED_ARCHS) of the same; setup.py of 0.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import lowest_capability, newest_for
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    found = context.require_capability()
    needed = lowest_capability(context.version)
    if context.version_assumed or found is None or found[0] * 10 + found[1] >= needed:
        return
    last = newest_for(found[0] * 10 + found[1])
    card, have, need = context.require_gpus().gpu.name, found[0] + found[1] / 10, needed / 10
    yield Finding(
        msg(
            "{vllm} is built for compute capability {need:.1f} and newer; {gpu} has {have:.1f}: {last} is the last "
            "release for it",
            zh="{vllm} 面向计算能力 {need:.1f} 及以上的显卡构建；{gpu} 只有 {have:.1f}：{last} 是支持它的最后一个版本",
            vllm=words.vllm(context),
            need=need,
            gpu=card,
            have=have,
            last=last,
        )
        if last is not None
        else msg(
            "{vllm} is built for compute capability {need:.1f} and newer; {gpu} has {have:.1f}, for which no release "
            "is built",
            zh="{vllm} 面向计算能力 {need:.1f} 及以上的显卡构建；{gpu} 只有 {have:.1f}，没有任何版本支持它",
            vllm=words.vllm(context),
            need=need,
            gpu=card,
            have=have,
        ),
        context.place(),
    )


RULE = Rule(
    code="CMD210",
    name="cards-below-release",
    severity=Severity.ERROR,
    summary=msg("The card is older than this vLLM is built for.", zh="显卡过旧，该版本的 vLLM 没有为它构建。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.20.0/docs/getting_started/installation/gpu.cuda.inc.md",
        "https://github.com/vllm-project/vllm/blob/v0.20.0/docker/Dockerfile",
        "https://github.com/vllm-project/vllm/blob/v0.19.0/docker/Dockerfile",
    ),
    bad=(
        Example("vllm serve m\n", at="m", vllm="0.20.0", gpu="V100"),
        Example("vllm serve m --dtype half\n", at="m", vllm="0.33.0", gpu="2xV100-32"),
        Example("vllm serve m --dtype half\n", at="m", vllm="0.19.0", gpu="sm_60"),
    ),
    good=(
        Example("vllm serve m --dtype half\n", vllm="0.19.1", gpu="V100"),
        Example("vllm serve m --dtype half\n", vllm="0.33.0", gpu="T4"),
        Example("vllm serve m\n", vllm="0.33.0", gpu="MI300X"),
    ),
)
