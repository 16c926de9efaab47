"""Ray lost an actor or a node.

What it does: recognises Ray's report of a dead actor; what killed it, where told, comes first.
Why it matters: The report names the survivor's view. Memory of the host is the usual reason: Ray's own monitor or the
    kernel ended the worker.
How to fix: read the worker's log in /tmp/ray/session_latest/logs and the node's kernel log; see whether host memory
    ran out.
When to ignore: where another error of the worker is named.
Sources: ray/exceptions.py (ActorDiedError, NodeDiedError).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"At least one Worker is dead|Ray workers have not "
        r"started|ActorDiedError|RayActorError|NodeDiedError|WorkerCrashedError|actor (?:is "
        r"dead|died)|[Ww]orker "
        r"unexpectedly exits|raylet.*(?:died|crash)"
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "Ray lost a worker: its own log (/tmp/ray/session_latest/logs) and the node's kernel log tell why",
            zh="Ray 丢失了一个 worker：原因见其日志（/tmp/ray/session_latest/logs）和节点的内核日志",
        ),
        POSSIBLE,
    )


RULE = Rule(
    code="LOG149",
    name="ray-worker-died",
    severity=Severity.ERROR,
    summary=msg("Ray lost an actor or a node.", zh="Ray 丢失了 actor 或节点。"),
    check=check,
    cause=Cause.RAY_WORKER_DIED,
    sources=("https://docs.ray.io/en/latest/ray-observability/user-guides/debug-apps/debug-failures.html",),
    bad=(
        Example(
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
            at="line 1: ray.exceptions",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
