"""Ray waits for GPUs or nodes that the cluster lacks or others hold.

What it does: recognises vLLM's waiting for its placement group, Ray's autoscaler, and vLLM's refusals after it.
Why it matters: The start does not fail: it waits, then gives up after half an hour. Earlier jobs may hold the GPUs,
    or a node joined without any.
How to fix: compare `ray status` with tensor x pipeline parallel size; end what holds the GPUs; start ray on every
    node with its GPUs visible.
When to ignore: a wait of some seconds.
Sources: vllm/executor/ray_utils.py (_wait_until_pg_ready), vLLM 0.6.6; vllm/v1/executor/ray_utils.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import EVERYWHERE, LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Cannot provide a placement group(?: requiring (?P<count>\d+) GPUs)?",
        r"Waiting for creating a placement group of specs for\b|"
        r"parallel size \(\d+\) exceeds available GPUs \((?:\d+)\)",
        r"No available node types can fulfill resource request|[Cc]urrent node has no (?:GPU|\w+) "
        r"available|You don't have enough GPUs available in a current node|Not enough resources to allocate|"
        r"Ray cluster status: \d+/\d+ nodes alive|Cluster is NOT ready|"
        r"Not enough total available nodes|No nodes with resources found|Ray does not allocate any \w+ on the driver",
        kinds=EVERYWHERE,
    )
    if hit is None or (context.facts.served and hit.entry.kind is EntryKind.NOTE):
        return
    waits = hit.entry.kind in (EntryKind.NOTE, EntryKind.WARNING) or hit.match[0].startswith("Waiting")
    yield context.finding(
        hit,
        msg(
            "Ray has not the {count} GPUs that vLLM asks for: compare `ray status` with tensor x pipeline "
            "parallel size",
            zh="Ray 没有 vLLM 所需的 {count} 个 GPU：请把 `ray status` 与张量并行数乘流水线并行数比较",
            count=count,
        )
        if (count := words.group(hit, "count"))
        else msg(
            "Ray has not the GPUs that vLLM asks for: compare `ray status` with tensor x pipeline parallel size",
            zh="Ray 没有 vLLM 所需的 GPU：请把 `ray status` 与张量并行数乘流水线并行数比较",
        ),
        LIKELY,
        severity=Severity.WARNING if waits else None,
    )


RULE = Rule(
    code="LOG147",
    name="ray-waits-for-gpus",
    severity=Severity.ERROR,
    summary=msg(
        "Ray waits for GPUs or nodes that the cluster lacks or others hold.",
        zh="Ray 在等待集群中没有或被占用的 GPU 或节点。",
    ),
    check=check,
    cause=Cause.RAY_RESOURCES_LACKING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/executor/ray_utils.py",),
    bad=(
        Example(
            "INFO 06-26 07:48:15 ray_utils.py:212] Waiting for creating a placement group of specs for "
            "150 seconds. specs=[{'GPU': 1.0}]. Check `ray status` to see if you have enough resources.\n",
            at="line 1: Waiting",
        ),
        Example(
            "ValueError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}] within "
            "1800 seconds. See `ray status` to make sure the cluster has enough resources.\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
