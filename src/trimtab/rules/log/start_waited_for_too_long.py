"""Load or compile takes longer than somebody waits: vLLM's front end, a probe, an orchestrator.

What it does: recognises vLLM's own time-out, and Kubernetes' probes that end a start.
Why it matters: The engine makes progress and is ended; it begins anew and never gets further.
How to fix: raise VLLM_ENGINE_READY_TIMEOUT_S (older: VLLM_RPC_TIMEOUT), or give the pod a startupProbe that waits as
    long as the load takes; put the weights on a faster disk.
When to ignore: never; the server cannot work like this.
Sources: vllm/v1/engine/core_client.py, vLLM 0.26 to 0.33; Kubernetes' probes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, POSSIBLE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"Timed out waiting for (?:new )?engine core processes to start",
        r"Timed out waiting for (?:new )?engines to send|[Tt]imed out after \d+s waiting for API server|DP "
        r"Coordinator process "
        r"failed to report|(?:RPCServer|MQLLMEngine) didn't reply within",
        r"(?:Startup|Liveness|Readiness) probe failed|failed (?:startup|liveness) probe|did not "
        r"(?:respond|start) within|Server failed to start in time|RPCServer process.*timed out",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the start took longer than was waited for: raise VLLM_ENGINE_READY_TIMEOUT_S, or the startup probe's "
                "time",
                zh="启动时间超过等待时限：请增大 VLLM_ENGINE_READY_TIMEOUT_S 或启动探针的时间",
            ),
            LIKELY,
        )
    elif not context.facts.served and (ended := context.first(TERMINATED)):
        yield context.finding(
            ended,
            msg(
                "the server was told to end (SIGTERM) before it served: where nobody did so by hand, by a probe or an "
                "orchestrator that waits too short a time for the load",
                zh="服务器在就绪之前收到了结束信号（SIGTERM）：若非人为，则是探针或编排系统等待加载的时间过短",
            ),
            POSSIBLE,
        )


TERMINATED = r"^KeyboardInterrupt: terminated"
"""How vLLM 0.8 to 0.32 end at SIGTERM while they start."""


RULE = Rule(
    code="LOG163",
    name="start-waited-for-too-long",
    severity=Severity.ERROR,
    summary=msg(
        "Load or compile takes longer than somebody waits: vLLM's front end, a probe, an orchestrator.",
        zh="加载或编译超过了等待时限：vLLM 前端、探针或编排系统。",
    ),
    check=check,
    cause=Cause.START_TIMEOUT,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/engine/core_client.py",
        "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    ),
    bad=(
        Example(
            "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by "
            "slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).\n",
            at="line 1: TimeoutError",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
