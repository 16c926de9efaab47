"""A hybrid or state-space model has fewer state blocks than --max-num-seqs.

What it does: reads both numbers from vLLM's refusal.
Why it matters: Each running sequence needs a state block of its own. The default of 256, or 1,024 on cards of 70 GiB
    and more, is above what a long context leaves; vLLM refuses when graphs are to be captured.
How to fix: give the --max-num-seqs named. A shorter --max-model-len makes blocks free as well.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_model_runner.py, vLLM 0.20 to 0.32.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(r"(?:max_num_seqs \((?P<seqs>\d+)\) )?exceeds available Mamba cache blocks \((?P<blocks>\d+)\)")
    if hit is None:
        return
    yield context.finding(
        hit,
        msg(
            "--max-num-seqs {seqs} is more than the {blocks} state blocks that the card holds; "
            "--max-num-seqs {blocks} fits",
            zh="--max-num-seqs {seqs} 超过显卡能容纳的 {blocks} 个状态块；--max-num-seqs {blocks} 可以放下",
            seqs=hit["seqs"] or "",
            blocks=hit["blocks"],
        ),
        SURE,
        fix=set_flag(context, "max-num-seqs", hit["blocks"]),
    )


RULE = Rule(
    code="LOG012",
    name="state-blocks-below-sequences",
    severity=Severity.ERROR,
    summary=msg(
        "A hybrid or state-space model has fewer state blocks than --max-num-seqs.",
        zh="混合模型或状态空间模型的状态块少于 --max-num-seqs。",
    ),
    check=check,
    cause=Cause.MAMBA_BLOCKS_TOO_FEW,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] ValueError: max_num_seqs (1024) exceeds "
            "available Mamba cache blocks (742). Each decode request requires one Mamba cache block.\n",
            at="line 3: ValueError: max_num_seqs",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --max-num-seqs 742",
        ),
    ),
    good=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "(EngineCore pid=7) INFO 11-30 03:43:16 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens\n"
        ),
    ),
)
