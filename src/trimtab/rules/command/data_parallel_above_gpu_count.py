"""The data-parallel replicas need more GPUs than are named.

What it does: multiplies tensor, pipeline and data-parallel size on one host and compares with the GPUs that --gpu, the
    environment or docker name.
Why it matters: each replica has GPUs of its own; the ranks that find none fail while the others wait.
How to fix: lower --data-parallel-size to the number in the message, or name more GPUs.
When to ignore: when replicas run on other hosts; with their flags (--data-parallel-address and its like) it is silent.
Sources: vllm/config/parallel.py (world_size_across_dp), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.more_ranks_than_gpus import named_devices
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

MANY_HOSTS = (
    "nnodes", "node-rank", "data-parallel-address", "data-parallel-size-local", "data-parallel-rank",
    "data-parallel-start-rank", "data-parallel-external-lb", "data-parallel-hybrid-lb", "data-parallel-backend",
)  # fmt: skip


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    use = command.last("data-parallel-size")
    dp = context.integer("data-parallel-size", 1) or 1
    if use is None or dp <= 1 or any(command.all(name) for name in MANY_HOSTS):
        return
    if command.get("distributed-executor-backend") == "ray":
        return
    each = (context.integer("tensor-parallel-size", 1) or 1) * (context.integer("pipeline-parallel-size", 1) or 1)
    named = named_devices(context)
    given = named if named is not None else context.require_gpu_count()
    if each > given or each * dp <= given:
        return  # more ranks in one replica than GPUs: that has a rule of its own
    yield Finding(
        msg(
            "{dp} replicas of {each} GPUs need {needed}; {given} are named, enough for {fits}",
            zh="{dp} 个副本、每个 {each} 张卡，共需 {needed} 张；只给出 {given} 张，够 {fits} 个副本",
            dp=dp,
            each=each,
            needed=each * dp,
            given=given,
            fits=given // each,
        ),
        use.value_span or use.span,
        context.set_value(use, str(given // each), Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD107",
    name="data-parallel-above-gpu-count",
    severity=Severity.ERROR,
    summary=msg(
        "The data-parallel replicas need more GPUs than are named.", zh="数据并行的副本需要的卡数多于给出的卡数。"
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/parallel.py",),
    bad=(
        Example(
            "vllm serve m --tensor-parallel-size 2 --data-parallel-size 8\n",
            at="8",
            fixed="vllm serve m --tensor-parallel-size 2 --data-parallel-size 4\n",
            gpu="8xH100-80",
        ),
    ),
    good=(
        Example("vllm serve m --tensor-parallel-size 2 --data-parallel-size 4\n", gpu="8xH100-80"),
        Example("vllm serve m --data-parallel-size 16 --data-parallel-size-local 8\n", gpu="8xH100-80"),
    ),
)
