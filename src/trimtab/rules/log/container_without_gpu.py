"""A container was started without its GPUs or the NVIDIA runtime.

What it does: recognises Docker's, the NVIDIA image's and NVML's words inside a container.
Why it matters: The image holds no driver: the runtime brings it in, together with the devices.
How to fix: docker run --gpus all (compose: deploy.resources.reservations.devices; Kubernetes: limits nvidia.com/gpu),
    with nvidia-container-toolkit on the host.
When to ignore: never; the server cannot work like this.
Sources: Docker's device driver selection; nvidia-container-toolkit.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"could not select device driver|nvidia-container-cli: (?!requirement)|unknown or invalid runtime name: nvidia",
        r"NVIDIA Driver was not detected|libnvidia-ml\.so\.1: cannot open|libcuda\.so\.1: cannot "
        r"open|Insufficient nvidia\.com/gpu",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "the container has no GPU: start it with --gpus all (Kubernetes: limits nvidia.com/gpu) and install "
            "nvidia-container-toolkit on the host",
            zh="容器内没有 GPU：请用 --gpus all 启动（Kubernetes 用 limits nvidia.com/gpu），并在主机安装 "
            "nvidia-container-toolkit",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG120",
    name="container-without-gpu",
    severity=Severity.ERROR,
    summary=msg(
        "A container was started without its GPUs or the NVIDIA runtime.", zh="容器启动时没有 GPU 或 NVIDIA 运行时。"
    ),
    check=check,
    cause=Cause.CONTAINER_WITHOUT_GPU,
    sources=("https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",),
    bad=(
        Example(
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
            at="line 1: docker: Error",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
