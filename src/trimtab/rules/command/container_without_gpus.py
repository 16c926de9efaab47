"""The container of vLLM's CUDA image is given no GPU.

What it does: looks for --gpus, --runtime, --device, CDI or a reservation of GPUs around vLLM's CUDA image.
Why it matters: vLLM finds no device and stops with "failed to infer device type" or a CUDA error.
How to fix: docker run --gpus all; compose deploy.resources.reservations.devices; Kubernetes nvidia.com/gpu.
When to ignore: when the daemon's default runtime is nvidia.
Sources: docs/deployment/docker.md, vLLM 0.26; Docker's and Kubernetes' documentation of GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Edit, Form, Span
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

CUDA_IMAGE = re.compile(r"(?:.*/)?vllm-openai(?::(?!.*(?:cpu|rocm|xpu|tpu|hpu)).*)?")
# Other ways in which a text may give the container a device.
DEVICES = re.compile(r"--device\b|devices:|resourceClaims|nvidia\.com|amd\.com|runtimeClassName|habana\.ai")


def check(context: CommandContext) -> Iterator[Finding]:
    command, box = context.command, context.command.container
    if box is None or box.image is None or box.image.unknown or command.form not in (Form.DOCKER, Form.COMPOSE):
        return
    if not CUDA_IMAGE.fullmatch(box.image.text) or box.gpus or box.device_ids or box.runtime:
        return
    text = command.source.text if command.form is Form.COMPOSE else around(context)
    if DEVICES.search(text):
        return
    span = box.image.span
    fix = None
    if command.form is Form.DOCKER and span is not None:
        fix = Fix((Edit(Span(span.start, span.start), "--gpus all "),), Grade.UNSAFE)
    yield Finding(
        msg(
            "the container of {image} is given no GPU",
            zh="{image} 的容器没有分到 GPU",
            image=box.image.text,
        ),
        span,
        fix,
    )


def around(context: CommandContext) -> str:
    """The text of the command itself."""
    span = context.command.span
    return context.command.source.data[span.start : span.end].decode("utf-8", "replace")


RULE = Rule(
    code="CMD603",
    name="container-without-gpus",
    severity=Severity.WARNING,
    summary=msg("The container is given no GPU.", zh="容器没有分到 GPU。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/docs/deployment/docker.md",
        "https://docs.docker.com/reference/cli/docker/container/run/",
    ),
    bad=(
        Example(
            "docker run -p 8000:8000 vllm/vllm-openai:v0.26.0 m\n",
            at="vllm/vllm-openai:v0.26.0",
            fixed="docker run -p 8000:8000 --gpus all vllm/vllm-openai:v0.26.0 m\n",
        ),
    ),
    good=(
        Example("docker run --gpus all vllm/vllm-openai:v0.26.0 m\n"),
        Example("podman run --device nvidia.com/gpu=all vllm/vllm-openai:v0.26.0 m\n"),
        Example("docker run vllm/vllm-openai-cpu:v0.26.0 m\n"),
    ),
)
