"""vLLM's own all-reduce kernel failed; NCCL works.

What it does: recognises the file of the kernel in an error.
Why it matters: It maps other ranks' memory over CUDA IPC, which some virtual machines, containers and boards refuse.
How to fix: give --disable-custom-all-reduce: NCCL does the work, a little slower.
When to ignore: never, where it stopped the server.
Sources: csrc/custom_all_reduce.cuh; vllm/distributed/device_communicators/custom_all_reduce.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import POSSIBLE, SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(
        r"(?:[Ee]rror|[Ff]ail\w*)\b(?!.*To silence this warning).*custom_all_red|custom_all_reduce\.cuh"
    ) or context.framed(
        r"custom_all_reduce\.py|device_communicators/(?:symm_mem|quick_all_reduce|flashinfer_all_reduce)\.py|_SymmetricMemory\.rendezvous|distributed/_symmetric_memory/"
    )
    if hit is None:
        return
    said = "custom_all_red" in hit.match[0] and "File" not in hit.entry.text
    yield context.finding(
        hit,
        msg(
            "vLLM's own all-reduce kernel failed: give --disable-custom-all-reduce, NCCL then does the work",
            zh="vLLM 自带的 all-reduce 内核失败：请加 --disable-custom-all-reduce，改用 NCCL",
        ),
        SURE if said else POSSIBLE,
        fix=set_flag(context, "disable-custom-all-reduce", None),
    )


RULE = Rule(
    code="LOG144",
    name="custom-all-reduce-failed",
    severity=Severity.ERROR,
    summary=msg("vLLM's own all-reduce kernel failed; NCCL works.", zh="vLLM 自带的 all-reduce 内核失败，NCCL 正常。"),
    check=check,
    cause=Cause.CUSTOM_ALL_REDUCE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/distributed/device_communicators/custom_all_reduce.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'tensor_parallel_size': 2}\n"
            "Failed: Cuda error /src/csrc/custom_all_reduce.cuh:368 'invalid argument'\n",
            at="line 3: Failed: Cuda error",
            fixed=(
                "vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --tensor-parallel-size 2 --disable-custom-all-reduce"
            ),
        ),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [custom_all_reduce.py:151] Custom allreduce is disabled because your "
            "platform lacks GPU P2P capability.\n"
        ),
    ),
)
