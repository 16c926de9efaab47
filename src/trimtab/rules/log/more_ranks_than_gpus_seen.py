"""More ranks were asked for than the process sees GPUs.

What it does: recognises a device number that is not there, two ranks on one card, and swap space for several ranks on
    a host too small for as many cards.
Why it matters: Each rank takes a card of its own. The error seldom says so: it speaks of an ordinal, of NCCL or of
    swap space.
How to fix: give a --tensor-parallel-size (times pipeline and data parallel size) of at most the cards that nvidia-smi
    -L shows inside the container; see CUDA_VISIBLE_DEVICES.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_worker.py (init_device), vLLM 0.26; CUDA's cudaErrorInvalidDevice; NCCL's check of
    duplicate devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.log.swap_space_above_host_memory import TOO_LARGE, ranks_are_the_fault
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    swap = context.first(TOO_LARGE)
    hit = context.first(
        r"invalid device ordinal|Invalid device id|device >= 0 && device < num_gpus",
        r"local[_ ]rank (?P<rank>\d+) is out of bounds(?! for 0 )",
        r"visible device ordinal \S+ is out of range|max local gpu count",
        r"(?:number of|assigned) (?:visible|physical) ?\w* ?devices|exceeds assigned_physical_gpu_ids|index "
        r"\S+ is out of range.*"
        r"devices visible|Physical device \S+ for logical device \S+ is not visible|exceeds the total number "
        r"of available "
        r"GPUs in the cluster",
        r"[Dd]uplicate GPU detected|NCCL error: invalid usage|ncclInvalidUsage",
        r"(?:[Ww]orld size|tensor_parallel_size|replica size)\D*(?P<ranks>\d+)\)? "
        r".*?(?:larger|bigger|greater|exceeds|more) .*?(?:GPUs?|devices)",
    )
    if hit is None and (swap is None or not ranks_are_the_fault(swap)):
        return
    found = hit or swap
    ranks = context.facts.args.get("tensor_parallel_size") or context.facts.engine.get("tensor_parallel_size")
    yield context.finding(
        [found] if found else [],
        msg(
            "more ranks than GPUs{ranks}: --tensor-parallel-size may be at most the number of cards that "
            "nvidia-smi -L shows "
            "where vLLM runs",
            zh="进程数多于 GPU 数{ranks}：--tensor-parallel-size 不能超过 vLLM 所在环境 nvidia-smi -L 显示的显卡数",
            ranks=f" (--tensor-parallel-size {ranks})" if ranks else "",
        ),
        LIKELY if hit is None or hit.match[0].endswith(USAGE) else SURE,
    )


USAGE = ("invalid usage", "ncclInvalidUsage")
"""What NCCL says of any call that it does not take; two ranks on one card is the usual one."""


RULE = Rule(
    code="LOG103",
    name="more-ranks-than-gpus-seen",
    severity=Severity.ERROR,
    summary=msg("More ranks were asked for than the process sees GPUs.", zh="请求的进程数多于可见的 GPU 数。"),
    check=check,
    cause=Cause.RANKS_MORE_THAN_GPUS,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_worker.py",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    bad=(
        Example(
            "(Worker_TP1 pid=8) ERROR 11-30 03:43:16 [multiproc_executor.py:9] torch.AcceleratorError: "
            "CUDA error: invalid device ordinal\n",
            at="line 1: torch.AcceleratorError",
        ),
        Example(
            "ValueError: Too large swap space. 32.00 GiB out of the 30.90 GiB total CPU memory is "
            "allocated for the swap space.\n"
        ),
        Example(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, invalid usage, NCCL "
            "version 2.26.2 ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0 both on CUDA "
            "device 1000\n"
        ),
    ),
    good=(
        Example(
            "ValueError: Too large swap space. 4.00 GiB out of the 5.10 GiB total CPU memory is "
            "allocated for the swap space.\n"
        ),
    ),
)
