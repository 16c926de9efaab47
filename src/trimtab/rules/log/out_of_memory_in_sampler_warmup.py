"""The sampler's dry run of --max-num-seqs requests needs more than is left.

What it does: recognises vLLM's own words on it, and its functions in a traceback.
Why it matters: V1 samples for --max-num-seqs made-up requests at its start (256 by default, 1,024 on cards of 70 GiB
    and more); the logits of a large vocabulary take gigabytes in float32.
How to fix: give a lower --max-num-seqs. Do not raise --gpu-memory-utilization: it leaves less for this.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_model_runner.py (_dummy_sampler_run), vLLM 0.8 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.log.fixes import set_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

WARMING = r"out of memory occurred when warming up (?:sampler|pooler).*? with (?P<seqs>\d+) dummy"


def check(context: LogContext) -> Iterator[Finding]:
    hit = (
        context.first(WARMING)
        or context.first(r"_dummy_(?:sampler|pooler)_run")
        or context.framed(r"_dummy_(?:sampler|pooler)_run")
    )
    if hit is None:
        return
    said = context.first(WARMING)
    asked = int(said["seqs"]) if said and said["seqs"] else None
    lower = str(max(1, min(asked or 256, 1024) // 4))
    yield context.finding(
        said or hit,
        msg(
            "the card ran out of memory when the sampler was tried with {seqs} requests at once; try "
            "--max-num-seqs {lower}",
            zh="用 {seqs} 个并发请求预热采样器时显存用尽；请试 --max-num-seqs {lower}",
            seqs=asked or "max-num-seqs",
            lower=lower,
        ),
        SURE if said else LIKELY,
        fix=set_flag(context, "max-num-seqs", lower),
    )


RULE = Rule(
    code="LOG005",
    name="out-of-memory-in-sampler-warmup",
    severity=Severity.ERROR,
    summary=msg(
        "The sampler's dry run of --max-num-seqs requests needs more than is left.",
        zh="采样器按 --max-num-seqs 个请求预热时超过剩余显存。",
    ),
    check=check,
    cause=Cause.OOM_SAMPLER_WARMUP,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",),
    bad=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO 11-30 03:43:10 [api_utils.py:2] non-default args: {'model': "
            "'HuggingFaceTB/SmolLM2-1.7B-Instruct'}\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [core.py:9] RuntimeError: CUDA out of memory "
            "occurred when warming up sampler with 1024 dummy requests. Please try lowering "
            "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine.\n",
            at="line 3: RuntimeError: CUDA out of memory occurred",
            fixed="vllm serve HuggingFaceTB/SmolLM2-1.7B-Instruct --max-num-seqs 256",
        ),
        Example(
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in compile_or_warm_up_model\n'
            "    self.model_runner._dummy_sampler_run(hidden_states=last_hidden_states)\n"
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
