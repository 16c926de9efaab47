"""Several ranks share memory in a container that has 64 MiB of it.

What it does: looks for --shm-size, --ipc=host or a memory volume on /dev/shm where more than one rank runs.
Why it matters: NCCL and vLLM's own message queue live in /dev/shm; full, it ends in a bus error or an NCCL failure.
How to fix: docker run --ipc=host or --shm-size 16g; compose shm_size; Kubernetes an emptyDir of medium Memory.
When to ignore: when the daemon's default-shm-size was raised.
Sources: docs/deployment/docker.md, vLLM 0.26; vLLM issues 1710 and 1771; docker run reference (--shm-size, 64 MB).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Container, Edit, Form, Span
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

FORMS = (Form.DOCKER, Form.COMPOSE, Form.KUBERNETES)
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.I)
MIB = {"": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}
DEFAULT_MIB = 64
ENOUGH_MIB = 512


def check(context: CommandContext) -> Iterator[Finding]:
    command, box = context.command, context.command.container
    if box is None or command.form not in FORMS:
        return
    ranks = (context.integer("tensor-parallel-size", 1) or 1) * (context.integer("pipeline-parallel-size", 1) or 1)
    if ranks <= 1 or not shares_little(box):
        return
    use = command.last("tensor-parallel-size") or command.last("pipeline-parallel-size")
    size = box.shm_size.text if box.shm_size else f"{DEFAULT_MIB} MiB"
    yield Finding(
        msg(
            "{ranks} ranks share {size} of /dev/shm in this container",
            zh="这个容器里 {ranks} 个 rank 共用 {size} 的 /dev/shm",
            ranks=ranks,
            size=size,
        ),
        use.span if use else None,
        mend(context, box),
    )


def shares_little(box: Container) -> bool:
    """Whether /dev/shm is the default or smaller than what several ranks take."""
    if box.ipc is not None and box.ipc.text not in ("private", "none"):
        return False
    if box.shm_mount is not None or any("/dev/shm" in volume for volume in box.volumes):
        return False
    if box.shm_size is None:
        return True
    found = SIZE.fullmatch(box.shm_size.text.strip())
    return found is not None and float(found[1]) * MIB[found[2].lower()] < ENOUGH_MIB


def mend(context: CommandContext, box: Container) -> Fix | None:
    """--ipc=host in front of the image of a `docker run` that says nothing of shared memory."""
    image = box.image
    if context.command.form is not Form.DOCKER or box.shm_size or box.ipc or image is None or image.span is None:
        return None
    return Fix((Edit(Span(image.span.start, image.span.start), "--ipc=host "),), Grade.UNSAFE)


RULE = Rule(
    code="CMD601",
    name="container-shm-too-small",
    severity=Severity.WARNING,
    summary=msg("Several ranks share 64 MiB of /dev/shm.", zh="多个 rank 共用 64 MiB 的 /dev/shm。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/docs/deployment/docker.md",
        "https://github.com/vllm-project/vllm/issues/1710",
        "https://github.com/vllm-project/vllm/issues/1771",
        "https://docs.docker.com/reference/cli/docker/container/run/",
    ),
    bad=(
        Example(
            "docker run --gpus all vllm/vllm-openai:v0.26.0 m --tensor-parallel-size 2\n",
            at="--tensor-parallel-size 2",
            fixed="docker run --gpus all --ipc=host vllm/vllm-openai:v0.26.0 m --tensor-parallel-size 2\n",
        ),
        Example("docker run --shm-size 128m --gpus all vllm/vllm-openai:v0.26.0 m -tp 2\n", at="-tp 2"),
    ),
    good=(
        Example("docker run --gpus all --ipc=host vllm/vllm-openai:v0.26.0 m -tp 2\n"),
        Example("docker run --gpus all --shm-size 16g vllm/vllm-openai:v0.26.0 m -tp 2\n"),
        Example("docker run --gpus all vllm/vllm-openai:v0.26.0 m\n"),
    ),
)
