"""The swap space for KV blocks asks for too large a part of the host's memory.

What it does: reads both numbers from vLLM's check; where that asks for several times the default, the ranks may be
    the fault.
Why it matters: --swap-space is per rank (4 GiB each by default, up to 0.17). Above 70% of host memory vLLM refuses to
    start, above 40% it warns.
How to fix: give --swap-space 0 or 1: V1 never uses it. Where --tensor-parallel-size is above the number of cards,
    that is the fault, and not the swap space.
When to ignore: the warning may be ignored where the memory is there.
Sources: vllm/config.py (CacheConfig.verify_with_parallel_config), vLLM 0.2 to 0.17.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, SURE, TROUBLE, Hit, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

TOO_LARGE = r"(?P<word>Too|Possibly too) large swap space\. (?P<asked>[\d.]+) GiB out of the (?P<total>[\d.]+) GiB"
DEFAULT_GIB = 4.0
HOST_GIB_PER_CARD = 8.0


def ranks_are_the_fault(hit: Hit) -> bool:
    """Whether the default of several ranks is asked of a host whose memory is too small for so many cards."""
    ranks, rest = divmod(hit.number("asked"), DEFAULT_GIB)
    return rest == 0 and ranks >= 2 and hit.number("total") / ranks < HOST_GIB_PER_CARD


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(TOO_LARGE, kinds=(*TROUBLE, EntryKind.WARNING))
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "--swap-space takes {asked} of {total} GiB of host memory; give --swap-space 0, V1 never uses it",
            zh="--swap-space 占用主机内存 {total} GiB 中的 {asked} GiB；请设 --swap-space 0，V1 不使用它",
            asked=hit["asked"],
            total=hit["total"],
        ),
        POSSIBLE if ranks_are_the_fault(hit) else SURE,
        fix=set_flag(context, "swap-space", "0"),
        severity=Severity.ERROR if hit["word"] == "Too" else Severity.WARNING,
    )


RULE = Rule(
    code="LOG031",
    name="swap-space-above-host-memory",
    severity=Severity.ERROR,
    summary=msg(
        "The swap space for KV blocks asks for too large a part of the host's memory.",
        zh="KV 块的交换空间占主机内存的比例过大。",
    ),
    check=check,
    cause=Cause.SWAP_SPACE_TOO_LARGE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/config.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.9.1\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "ValueError: Too large swap space. 4.00 GiB out of the 5.10 GiB total CPU memory is "
            "allocated for the swap space.\n",
            at="line 3: ValueError: Too large swap space",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --swap-space 0",
        ),
        Example(
            "WARNING 06-20 config.py:1] Possibly too large swap space. 12.00 GiB out of the 28.70 GiB "
            "total CPU memory is allocated for the swap space.\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
