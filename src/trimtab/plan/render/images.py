"""vLLM's container images, and what a container of each needs.

Sources: docs/deployment/docker.md, docs/getting_started/installation/ (cpu.x86, gpu.cuda, gpu.rocm) and
docker/Dockerfile (ENTRYPOINT) of vLLM 0.10 to 0.33, release by release.
"""

from __future__ import annotations

from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.plan.memory.versions import Release
from trimtab.plan.render.launch import Launch

SERVE_ENTRY = Release(0, 12)
"""The first image whose entry point is `vllm serve`; before it was the API server's module, which takes --model."""
NAMES = {
    "nvidia": "vllm/vllm-openai:v{version}",
    "amd": "vllm/vllm-openai-rocm:v{version}",
    "cpu": "vllm/vllm-openai-cpu:v{version}-x86_64",
}
FIRST = {"nvidia": Release(0, 0), "amd": Release(0, 16), "cpu": Release(0, 18)}
"""The first release whose installation pages name an image of vLLM's own on Docker Hub."""
HUB_CACHE = "/root/.cache/huggingface"
"""Where the image looks for models of the hub."""
KEYS = ("VLLM_API_KEY", "HF_TOKEN")
"""Secrets that are handed on from outside where they are set: the server's key, the hub's."""
GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""What the vendors' Kubernetes device plugins call a card."""


def image(launch: Launch) -> str:
    """The image of this vLLM for these cards. UsageError where vLLM's documentation names none."""
    first = FIRST.get(launch.vendor)
    if first is None or launch.version < first:
        raise UsageError(
            msg("vLLM {version} has no published image for {card}", version=launch.version, card=launch.card),
            hint=msg("Use -o sh or -o systemd, which need no image."),
        )
    return NAMES[launch.vendor].format(version=launch.version)


def image_arguments(launch: Launch) -> list[str]:
    """The arguments for the image's own entry point."""
    if launch.vendor == "nvidia" and launch.version < SERVE_ENTRY:
        return ["--model", *launch.arguments]
    return launch.arguments
