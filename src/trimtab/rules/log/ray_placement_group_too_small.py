"""The Ray placement group that vLLM runs in is smaller than its ranks.

What it does: recognises vLLM's check in all versions, with its numbers where it tells them.
Why it matters: Started inside a Ray task or Serve replica, vLLM uses that one's group and makes none of its own.
How to fix: reserve as many bundles of one GPU as tensor x pipeline parallel size (one more bundle of CPU for the
    driver), or start vLLM outside of the group.
When to ignore: never; the server did not start.
Sources: vllm/executor/ray_utils.py (initialize_ray_cluster), vLLM 0.6.6; vllm/v1/executor/ray_utils.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"number of required \w+s exceeds the total number of available \w+s in the placement group(?:\. "
        r"*Required number of devices: (?P<need>\d+)\. *Total number of devices: (?P<have>\d+))?",
        r"Placement group bundle cannot have more than 1 \w+",
        r"placement group.*(?:too small|not enough bundles|insufficient)|bigger than a reserved number of",
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "the Ray placement group has fewer GPUs{have} than vLLM has ranks{need}: reserve one bundle per rank",
            zh="Ray placement group 中的 GPU 数{have}少于 vLLM 的进程数{need}：请为每个进程预留一个 bundle",
            have=f" ({told['have']})" if told.get("have") else "",
            need=f" ({told['need']})" if told.get("need") else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG146",
    name="ray-placement-group-too-small",
    severity=Severity.ERROR,
    summary=msg(
        "The Ray placement group that vLLM runs in is smaller than its ranks.",
        zh="vLLM 所在的 Ray placement group 小于其进程数。",
    ),
    check=check,
    cause=Cause.RAY_PLACEMENT_TOO_SMALL,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/executor/ray_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/executor/ray_utils.py",
    ),
    bad=(
        Example(
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the "
            "placement group. Required number of devices: 8. Total number of devices: 4.\n",
            at="line 1: ValueError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
