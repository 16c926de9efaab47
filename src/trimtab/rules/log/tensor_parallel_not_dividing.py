"""The tensor parallel size does not divide the model's heads or vocabulary.

What it does: reads both numbers from vLLM's check of attention heads, or from the division of a layer's width over
    the ranks.
Why it matters: Every rank takes an equal share of the heads. A size that divides the number of cards need not divide
    the heads.
How to fix: give a size that divides the number named; use the other cards with --pipeline-parallel-size or
    --data-parallel-size.
When to ignore: never; the server did not start.
Sources: vllm/config/model.py (verify_with_parallel_config), vLLM 0.26; vllm/config.py, vLLM 0.6.6;
    vllm/distributed/utils.py (divide).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

HEADS = (
    r"(?:attention|key/value|KV) heads \((?P<whole>\d+)\) must be divisible by (?:the )?tensor parallel "
    r"size \((?P<size>\d+)\)"
)
DIVIDE = r"^(?:AssertionError: )?(?P<whole>\d+) is not divisible by (?P<size>\d+)$"
OWN = (
    r"(?:num_(?:attention_|kv_)?heads|[Aa]ttention sink heads|group_norm_size)[ =(]*(?P<whole>\d+)?\)? must "
    r"be divisible by "
    r"(?:the )?(?:tp_size|tensor-parallel world size|world_size)[ =(]*(?P<size>\d+)?"
    r"|[Tt]ensor parallel world size (?:must|does not) divide|must be divisible by.*(?:decode.context|dcp|DCP)"
)
"""What models and layers of their own say."""
UNEVEN = msg(
    "the ranks cannot share the model's heads or groups evenly: give a lower --tensor-parallel-size",
    zh="模型的注意力头或分组无法平均分给各进程：请降低 --tensor-parallel-size",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(HEADS, DIVIDE, OWN)
    if hit is None:
        return
    told = hit.match.groupdict()
    if not told.get("whole") or not told.get("size"):
        yield context.finding(hit, UNEVEN, SURE)
        return
    whole, size = int(told["whole"]), int(told["size"])
    fitting = next((n for n in range(size - 1, 0, -1) if whole % n == 0), 1)
    heads = "heads" in hit.match[0]
    yield context.finding(
        hit,
        msg(
            "{whole} {what} cannot be split over {size} ranks; --tensor-parallel-size {fitting} divides them",
            zh="{whole} 个{what}无法平均分给 {size} 个进程；--tensor-parallel-size {fitting} 可以整除",
            whole=whole,
            what=msg("attention heads", zh="注意力头") if heads else msg("rows of a layer", zh="权重行"),
            size=size,
            fitting=fitting,
        ),
        SURE if heads else LIKELY,
        fix=set_flag(context, "tensor-parallel-size", str(fitting)) if heads else None,
    )


RULE = Rule(
    code="LOG101",
    name="tensor-parallel-not-dividing",
    severity=Severity.ERROR,
    summary=msg(
        "The tensor parallel size does not divide the model's heads or vocabulary.",
        zh="张量并行数不能整除模型的注意力头数或词表。",
    ),
    check=check,
    cause=Cause.HEADS_NOT_DIVISIBLE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/distributed/utils.py",
    ),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct', 'tensor_parallel_size': 3}\n"
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
            "  Value error, Total number of attention heads (32) must be divisible by tensor parallel "
            "size (3). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]\n",
            at="line 3: pydantic_core",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --tensor-parallel-size 2",
        ),
        Example("AssertionError: 151655 is not divisible by 4\n"),
    ),
    good=(Example("(EngineCore pid=7) INFO 11-30 03:43:10 [gpu_model_runner.py:1] Starting to load model\n"),),
)
