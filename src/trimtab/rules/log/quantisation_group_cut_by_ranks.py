"""A rank's share of a quantised weight does not end on a group or block.

What it does: recognises the checks of AWQ, GPTQ, Marlin and block FP8 in all versions, with their numbers.
Why it matters: Scales belong to groups (64 or 128 wide) or blocks. Heads may divide where the width of the MLP, or of
    a shared expert, does not.
How to fix: give a lower --tensor-parallel-size, fill the other cards with --pipeline-parallel-size, or take another
    checkpoint. --enable-expert-parallel keeps experts whole, but not a shared expert.
When to ignore: never; the server did not start.
Sources: vllm/model_executor/layers/quantization/awq.py, fp8.py and utils/marlin_utils.py, vLLM 0.6.6;
    utils/fp8_utils.py, vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

BLOCK = (
    r"= (?P<share>\d+) is not divisible(?: by (?:weight quantization )?(?:block_[nk]|min_(?:n_|k_)?threads?(?:_[nk])?|"
    r"pack_factor|group_size) = (?P<block>\d+))?"
)
OWN = (
    r"(?:per[_ ](?:partition|TP rank)|intermediate[_ ]size\w*|hidden_size|[Ii]nput (?:size|features)|output channels)"
    r"[^.]{0,80}?(?P<share>\d+)?\)? ?(?:to be|must be|not|is not) divisible by (?:\w+[ =(]*)?(?P<block>\d+)?"
    r"|size_[kmn] must (?:be )?divisible by \w+|[Aa]ll partitions must be divisible by|weight_scale\S* to be divisible"
)
"""What quantisation methods of their own say."""
KERNEL = (
    r"[Gg]roup size \(?(?P<block>\d+)\)? does not evenly divide the number of input features \(?(?P<share>\d+)"
    r"|Invalid thread config: thread_"
    r"|BLOCK_SIZE_K // group_size must be one of|(?:K|N|K and N|[Oo]utput features \(\d+\)|last dimension \d+) must be "
    r"divisible by \S+"
)
"""What single kernels say, in vLLM's list of why none fits."""
ALIGNED = r"(?:input|output) size is not aligned with the quantized weight shape"
ASSERTED = r"^AssertionError: assert \w+ % (?:\w+\.)*(?:scales?|group_size|pack_factor|block_\w+|tile_\w+)\b.*== 0"
"""Marlin's checks have no words of their own."""


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(BLOCK, ALIGNED, OWN, KERNEL, ASSERTED)
    if hit is None:
        return
    told = hit.match.groupdict()
    numbers = (
        msg(" ({share} against {block})", zh="（{share} 与 {block}）", share=told["share"], block=told["block"])
        if told.get("share") and told.get("block")
        else ""
    )
    size = context.facts.args.get("tensor_parallel_size")
    half = size // 2 if isinstance(size, int) and size > 1 else None
    yield context.finding(
        hit,
        msg(
            "the ranks cut a group or block of the quantised weights{numbers}: give a lower "
            "--tensor-parallel-size and fill the "
            "other cards with --pipeline-parallel-size",
            zh="张量并行切断了量化权重的分组{numbers}：请降低 --tensor-parallel-size，其余显卡用 "
            "--pipeline-parallel-size",
            numbers=numbers,
        ),
        SURE,
        fix=set_flag(context, "tensor-parallel-size", str(half)) if half else None,
    )


RULE = Rule(
    code="LOG102",
    name="quantisation-group-cut-by-ranks",
    severity=Severity.ERROR,
    summary=msg(
        "A rank's share of a quantised weight does not end on a group or block.",
        zh="每个进程分到的量化权重没有落在分组或分块边界上。",
    ),
    check=check,
    cause=Cause.QUANT_BLOCKS_NOT_DIVISIBLE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/model_executor/layers/quantization/fp8.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/model_executor/layers/quantization/awq.py",
    ),
    bad=(
        Example(
            "ValueError: The input size is not aligned with the quantized weight shape. This can be "
            "caused by too large tensor parallel size.\n",
            at="line 1: ValueError: The input size",
        ),
        Example(
            "ValueError: The output_size of gate's and up's weight = 320 is not divisible by weight "
            "quantization block_n = 128.\n"
        ),
        Example(
            "ValueError: Weight input_size_per_partition = 4736 is not divisible by min_thread_k = 128. "
            "Consider reducing tensor_parallel_size or running with --quantization gptq.\n"
        ),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
