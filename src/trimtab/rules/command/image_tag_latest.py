"""The image's tag does not say which vLLM it holds.

What it does: marks images of vLLM without a tag, or with latest or nightly.
Why it matters: the same command runs another vLLM next month, with other flags and defaults.
How to fix: write the tag of a release, such as v0.26.0, or a digest.
When to ignore: when it is only tried out.
Sources: docs/deployment/docker.md, vLLM 0.26, whose examples take latest; the releases carry tags such as v0.26.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

IMAGE = re.compile(r"\bvllm-openai\b")
MOVING = (None, "latest", "nightly")


def check(context: CommandContext) -> Iterator[Finding]:
    box = context.command.container
    if box is None or box.image is None or box.image.unknown or "$" in box.image.text or "@" in box.image.text:
        return
    if not IMAGE.search(box.image.text) or box.tag not in MOVING:
        return
    yield Finding(
        msg(
            "{image} names no version of vLLM: what it holds changes over time",
            zh="{image} 没有写明 vLLM 的版本：内容会随时间变化",
            image=box.image.text,
        ),
        box.image.span,
    )


RULE = Rule(
    code="CMD604",
    name="image-tag-latest",
    severity=Severity.INFO,
    summary=msg("The image's tag does not say which vLLM it holds.", zh="镜像标签没有写明 vLLM 的版本。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/docs/deployment/docker.md",),
    bad=(
        Example("docker run --gpus all vllm/vllm-openai:latest m\n", at="vllm/vllm-openai:latest"),
        Example("docker run --gpus all vllm/vllm-openai m\n", at="vllm/vllm-openai"),
    ),
    good=(
        Example("docker run --gpus all vllm/vllm-openai:v0.26.0 m\n"),
        Example("docker run --gpus all vllm/vllm-openai@sha256:00 m\n"),
    ),
)
