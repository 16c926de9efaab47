"""CUDA was in use before the workers were forked.

What it does: recognises PyTorch's refusal to use CUDA in a process that was forked after CUDA's first use.
Why it matters: vLLM forks its processes by default and looks itself whether CUDA is in use already (from 0.6.3 on). A
    program that imports vLLM and touches CUDA first, or a plug-in that does, ends here.
How to fix: start with VLLM_WORKER_MULTIPROC_METHOD=spawn, with the program's own start below `if __name__ ==
    "__main__":`; or touch CUDA (torch.cuda, a model on the card) only after vLLM has started.
When to ignore: never; the worker ended.
Sources: torch/cuda/__init__.py (_lazy_init); vllm/utils/system_utils.py (_maybe_force_spawn), vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(r"Cannot re-initialize (?P<device>\w+) in forked subprocess")
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "{device} was in use before the workers were forked: set VLLM_WORKER_MULTIPROC_METHOD=spawn",
                zh="在派生工作进程之前已经使用了 {device}：请设置 VLLM_WORKER_MULTIPROC_METHOD=spawn",
                device=hit["device"],
            ),
            SURE,
        )


RULE = Rule(
    code="LOG314",
    name="workers-forked-after-cuda",
    severity=Severity.ERROR,
    summary=msg("CUDA was in use before the workers were forked.", zh="在派生（fork）工作进程之前已经使用了 CUDA。"),
    check=check,
    cause=Cause.VARIABLE_INVALID,
    sources=("https://docs.vllm.ai/en/latest/usage/troubleshooting/#python-multiprocessing",),
    bad=(
        Example(
            "(VllmWorkerProcess pid=8) ERROR 11-30 03:43:16 multiproc_worker_utils.py:226] RuntimeError: Cannot "
            "re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
            "method\n",
            at="line 1: RuntimeError",
        ),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [system_utils.py:152] We must use the `spawn` multiprocessing start method. "
            "Overriding VLLM_WORKER_MULTIPROC_METHOD to 'spawn'. Reasons: CUDA is initialized\n"
        ),
    ),
)
