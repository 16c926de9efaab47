"""A Docker Compose file with vLLM as its one service."""

from __future__ import annotations

from typing import Any

from trimtab.plan.render.images import HUB_CACHE, KEYS, image, image_arguments
from trimtab.plan.render.launch import Launch
from trimtab.plan.render.yamltext import dump

SETTINGS: dict[str, dict[str, Any]] = {
    "nvidia": {"ipc": "host"},
    "amd": {"ipc": "host", "devices": ["/dev/kfd", "/dev/dri"], "group_add": ["video"], "cap_add": ["SYS_PTRACE"],
            "security_opt": ["seccomp=unconfined"]},
    "cpu": {"shm_size": "4g", "cap_add": ["SYS_NICE"], "security_opt": ["seccomp=unconfined"]},
}  # fmt: skip
"""What docker.py gives as options."""


def render(launch: Launch) -> str:
    """The file; the service counts as healthy once /health answers."""
    launch.require_absolute()
    service: dict[str, Any] = {
        "image": image(launch),
        "command": [literal(word) for word in image_arguments(launch)],
        "environment": {
            **{name: literal(value) for name, value in launch.env.items()},
            **dict.fromkeys(KEYS),
        },
        "ports": [f"{launch.port}:{launch.port}"],
        "volumes": [_models(launch)],
        **SETTINGS[launch.vendor],
        **_cards(launch),
        "healthcheck": _healthcheck(launch),
        "restart": "unless-stopped",
    }
    about = [launch.about, "Start: docker compose up -d. VLLM_API_KEY and HF_TOKEN are handed on where they are set."]
    return dump([{"name": launch.name, "services": {"vllm": service}}], about)


def literal(text: str) -> str:
    """A text that Compose does not interpolate ($$ stands for a dollar sign)."""
    return text.replace("$", "$$")


def _cards(launch: Launch) -> dict[str, Any]:
    if launch.vendor != "nvidia":
        return {}
    device = {"driver": "nvidia", "count": launch.cards, "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [device]}}}}


def _models(launch: Launch) -> Any:
    if launch.is_path:
        path = literal(launch.model)
        return {"type": "bind", "source": path, "target": path, "read_only": True}
    return f"${{HOME}}/.cache/huggingface:{HUB_CACHE}"


def _healthcheck(launch: Launch) -> dict[str, Any]:
    probe = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{launch.port}/health')"
    return {
        "test": ["CMD", "python3", "-c", probe],
        "interval": "10s",
        "timeout": "10s",
        "retries": 3,
        "start_period": f"{launch.startup_s}s",
    }
