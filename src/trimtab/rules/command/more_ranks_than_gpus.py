"""The command needs more GPUs than it is given.

What it does: compares tensor x pipeline parallel size with the GPUs that --gpu, the environment or the container names.
Why it matters: vLLM waits for placement or fails when a rank finds no device of its own.
How to fix: lower the parallel sizes to what the GPUs allow, or name more GPUs.
When to ignore: when the other ranks are on other hosts (Ray, --nnodes, LeaderWorkerSet); the rule is then silent by
    itself.
Sources: vllm/config/parallel.py (world_size against the visible devices), vLLM 0.26.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

MANY_HOSTS = ("nnodes", "node-rank", "data-parallel-address")
ACROSS_HOSTS = re.compile(
    rb"\bray start\b|multi-node-serving|\bLeaderWorkerSet\b|\bRay(?:Service|Cluster)\b|\bworkerSpec\b"
)
"""What a text says whose container is one of several that share a launch."""


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    if command.get("distributed-executor-backend") == "ray" or any(command.all(name) for name in MANY_HOSTS):
        return
    tp = context.integer("tensor-parallel-size", 1) or 1
    pp = context.integer("pipeline-parallel-size", 1) or 1
    use = context.command.last("tensor-parallel-size") or context.command.last("pipeline-parallel-size")
    if use is None or tp * pp <= 1:
        return
    named = named_devices(context)
    given = named if named is not None else context.require_gpu_count()
    if tp * pp <= given:
        return
    yield Finding(
        msg(
            "tensor-parallel size {tp} x pipeline-parallel size {pp} needs {needed} GPUs; {given} are named",
            zh="张量并行 {tp} x 流水线并行 {pp} 需要 {needed} 张卡；只给出 {given} 张",
            tp=tp,
            pp=pp,
            needed=tp * pp,
            given=given,
        ),
        use.span,
    )


def named_devices(context: CommandContext) -> int | None:
    """How many devices the command itself names; None when it names none or all."""
    visible = context.env("CUDA_VISIBLE_DEVICES")
    if visible:
        return len([d for d in visible.split(",") if d.strip()])
    container = context.command.container
    if container is None:
        return None
    if container.device_ids:
        return len(container.device_ids)
    alone = context.source is not None and not ACROSS_HOSTS.search(context.source.data)
    return container.gpu_count or None if alone else None


RULE = Rule(
    code="CMD104",
    name="more-ranks-than-gpus",
    severity=Severity.ERROR,
    summary=msg("The command needs more GPUs than it is given.", zh="命令需要的卡数多于给出的卡数。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/parallel.py",),
    bad=(
        Example("CUDA_VISIBLE_DEVICES=0,1 vllm serve m --tensor-parallel-size 4\n", at="--tensor-parallel-size 4"),
        Example("docker run --gpus 1 --ipc=host vllm/vllm-openai:v0.20.0 m -tp 2\n", at="-tp 2"),
    ),
    good=(
        Example("docker run --gpus 2 --ipc=host vllm/vllm-openai:v0.20.0 m -tp 2\n"),
        Example("docker run --gpus 1 vllm/vllm-openai:v0.20.0 m -tp 2 --distributed-executor-backend ray\n"),
        Example("CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve m --tensor-parallel-size 4\n"),
        Example("vllm serve m --tensor-parallel-size 2\n", gpu="2xH100-80"),
    ),
)
