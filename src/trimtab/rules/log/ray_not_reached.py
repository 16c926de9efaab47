"""Ray is not installed, not running, not reached, or of another version on some node.

What it does: recognises Ray's and vLLM's words on it.
Why it matters: vLLM no longer brings Ray along; and all nodes need the same Python and the same Ray.
How to fix: on one machine leave Ray out (--distributed-executor-backend mp); else install the same ray everywhere,
    start the head, and set RAY_ADDRESS.
When to ignore: never, where it stopped the start.
Sources: vllm/v1/executor/ray_utils.py, vLLM 0.26; ray/_private/worker.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"No module named 'ray'|Ray is not installed|Unable to load Ray which is required",
        r"[Ff]ailed to import [Rr]ay|requires (?:installation of "
        r"ray|Ray to be "
        r"installed)|Ray is required if|Ray is not initialized although|does not support ray\b",
        r"[Cc]ould not find any running Ray instance|[Ff]ailed to connect to GCS|Unable to connect to GCS|Ray "
        r"Client is not connected",
        r"Version mismatch: The cluster was started with|Ray version mismatch|Ray version \S+ (?:or "
        r"greater )?is required|precision of the fractional quantity of resource",
        r"RaySystemError: System error: No module named|RuntimeEnvSetupError",
    )
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "Ray is not reached ({what}): on one machine give --distributed-executor-backend mp, else the "
            "same ray on all nodes",
            zh="无法使用 Ray（{what}）：单机请用 --distributed-executor-backend mp，多机请在所有节点安装同版本的 ray",
            what=hit.match[0],
        ),
        SURE,
        fix=set_flag(context, "distributed-executor-backend", "mp"),
    )


RULE = Rule(
    code="LOG148",
    name="ray-not-reached",
    severity=Severity.ERROR,
    summary=msg(
        "Ray is not installed, not running, not reached, or of another version on some node.",
        zh="Ray 未安装、未运行、无法连接，或节点间版本不一致。",
    ),
    check=check,
    cause=Cause.RAY_UNREACHABLE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/executor/ray_utils.py",
        "https://docs.ray.io/en/latest/cluster/getting-started.html",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'distributed_executor_backend': 'ray'}\n"
            "ModuleNotFoundError: No module named 'ray'\n",
            at="line 3: ModuleNotFoundError",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --distributed-executor-backend mp",
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
