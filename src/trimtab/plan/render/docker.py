"""`docker run` of vLLM's own image."""

from __future__ import annotations

from trimtab.plan.render.images import HUB_CACHE, KEYS, image, image_arguments
from trimtab.plan.render.launch import Launch
from trimtab.plan.render.shelltext import command_lines, flag_words, quote, script

DEVICES = {
    "nvidia": ("--gpus {cards}", "--ipc=host"),
    "amd": ("--device /dev/kfd", "--device /dev/dri", "--group-add video", "--cap-add SYS_PTRACE",
            "--security-opt seccomp=unconfined", "--ipc=host"),
    "cpu": ("--cap-add SYS_NICE", "--security-opt seccomp=unconfined", "--shm-size 4g"),
}  # fmt: skip
"""Options by vendor, as vLLM's installation pages have them; ranks share memory, hence the host's IPC."""


def render(launch: Launch) -> str:
    """A script with one `docker run` that comes back after a restart of the host."""
    launch.require_absolute()
    name = image(launch)
    options = [
        "--detach --restart unless-stopped",
        f"--name {launch.name}",
        *(option.format(cards=launch.cards) for option in DEVICES[launch.vendor]),
        f"--publish {launch.port}:{launch.port}",
        *(f"--env {quote(f'{n}={value}')}" for n, value in launch.env.items()),
        *(f"--env {key}" for key in KEYS),
        _models(launch),
    ]
    model = ["--model " * (image_arguments(launch)[0] == "--model") + quote(launch.model)]
    command = command_lines("docker run", [*options, name, *model, *map(flag_words, launch.flags)])
    return script(f"{launch.about} VLLM_API_KEY and HF_TOKEN are handed on where they are set.", [command])


def _models(launch: Launch) -> str:
    """The model's directory at the same path, read-only; else the hub's cache, so that nothing is fetched twice."""
    if launch.is_path:
        return "--mount " + quote(f'type=bind,"source={_csv(launch.model)}","target={_csv(launch.model)}",readonly')
    return f'--volume "$HOME/.cache/huggingface:{HUB_CACHE}"'


def _csv(text: str) -> str:
    """A value inside a quoted field: --mount is read as a line of CSV."""
    return text.replace('"', '""')
