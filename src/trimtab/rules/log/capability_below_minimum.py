"""The card is older than vLLM's builds go.

What it does: recognises vLLM's and PyTorch's refusals that name a compute capability.
Why it matters: Released wheels hold code for 7.0 (newer ones 7.5) and up; a Pascal or older card cannot run them,
    whatever the model.
How to fix: use another card, or an old or self-built vLLM. Another --dtype does not help.
When to ignore: never; the server cannot work like this.
Sources: vllm/worker/worker.py, vLLM 0.2; torch/cuda/__init__.py (_check_capability).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, TROUBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"compute capability below (?P<least>\d+\.\d+) are not supported",
        r"which is of (?:cuda )?capability (?P<has>\d+\.\d+)\.\s+(?:PyTorch no longer supports|Minimum and Maximum)",
        kinds=(*TROUBLE, EntryKind.WARNING),
    )
    if hit is None:
        return
    told = hit.match.groupdict()
    yield context.finding(
        hit,
        msg(
            "the card's compute capability{has} is below what this build holds code for{least}; another card "
            "is needed, "
            "another --dtype does not help",
            zh="显卡的计算能力{has}低于该版本支持的下限{least}；需要更换显卡，更改 --dtype 没有作用",
            has=f" ({told['has']})" if told.get("has") else "",
            least=f" ({told['least']})" if told.get("least") else "",
        ),
        SURE,
    )


RULE = Rule(
    code="LOG110",
    name="capability-below-minimum",
    severity=Severity.ERROR,
    summary=msg("The card is older than vLLM's builds go.", zh="显卡的计算能力低于 vLLM 支持的下限。"),
    check=check,
    cause=Cause.CAPABILITY_TOO_LOW,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/worker.py",
        "https://developer.nvidia.com/cuda-gpus",
    ),
    bad=(
        Example("RuntimeError: GPUs with compute capability below 7.0 are not supported.\n", at="line 1: RuntimeError"),
    ),
    good=(
        Example(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
            "Your Tesla T4 GPU has compute capability 7.5.\n"
        ),
    ),
)
