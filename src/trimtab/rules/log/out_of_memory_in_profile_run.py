"""The profile run before the KV cache is made needs more than the card has.

What it does: recognises an allocation that failed in the forward pass by which vLLM measures its peak; the weights
    are loaded.
Why it matters: The peak grows with --max-num-batched-tokens; in V0 without chunked prefill with --max-model-len; with
    an encoder, with the largest image or video.
How to fix: lower the flag named. A shorter --max-model-len does not always help: V0 turns chunked prefill on above
    32k, and 35,000 may fit where 29,000 does not. Do not raise --gpu-memory-utilization: the profile run is not bound
    by it.
When to ignore: never; the server did not start.
Sources: vllm/v1/worker/gpu_model_runner.py (profile_run), vLLM 0.26; vllm/worker/model_runner.py, vLLM 0.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.command.memory import advice, fix_to
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.log.fixes import largest_that_fits, wider
from trimtab.rules.log.oom import Stage, shortage
from trimtab.rules.rule import Example, Finding, Rule, Severity

LOWER = msg(
    "lower --max-num-batched-tokens (V0: --max-model-len), or limit the encoder's items with --limit-mm-per-prompt",
    zh="请降低 --max-num-batched-tokens（V0 为 --max-model-len），或用 --limit-mm-per-prompt 限制多模态输入",
)


WEIGHTS = msg(
    "the weights alone fill the card: spread them over more cards, or take a quantised checkpoint",
    zh="仅权重就占满显卡：请分到更多显卡，或使用量化的模型",
)
FULL = 0.85
"""Share of the card above which weights leave no room for a server."""


def _is_full(context: LogContext, total_gib: float | None) -> bool:
    weights, total = context.facts.numbers.get("weights_gib"), total_gib or context.facts.numbers.get("total_gib")
    return weights is not None and total is not None and weights > FULL * total


def check(context: LogContext) -> Iterator[Finding]:
    found = shortage(context)
    if found is None or found.stage is not Stage.PROFILE:
        return
    fitting = largest_that_fits(context, "max_num_batched_tokens", "max_model_len", "max_num_seqs")
    yield context.finding(
        found.hit,
        msg(
            "the profile run ran out of memory after the weights were loaded: {words}; {advice}",
            zh="权重加载之后，试运行时显存用尽：{words}；{advice}",
            words=found.words,
            advice=advice(fitting) if fitting else WEIGHTS if _is_full(context, found.total_gib) else LOWER,
        ),
        LIKELY,
        fix=(fix_to(context.launch, fitting) if context.launch and fitting else None) or wider(context),
    )


RULE = Rule(
    code="LOG004",
    name="out-of-memory-in-profile-run",
    severity=Severity.ERROR,
    summary=msg(
        "The profile run before the KV cache is made needs more than the card has.",
        zh="分配 KV 缓存之前的试运行超过显存。",
    ),
    check=check,
    cause=Cause.OOM_PROFILE,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/gpu_model_runner.py",
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/worker/model_runner.py",
    ),
    bad=(
        Example(
            "(EngineCore pid=7) INFO 11-30 03:43:15 [gpu_model_runner.py:2] Model loading took 14.29 GiB "
            "and 1.713532 seconds\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/gpu_worker.py", line 1, in determine_available_memory\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB. GPU 0 has a total "
            "capacity of 31.36 GiB of which 653.12 MiB is free.\n",
            at="line 4: torch.OutOfMemoryError",
        ),
        Example(
            "INFO 06-26 07:48:15 model_runner.py:1097] Loading model weights took 13.4966 GB\n"
            "Traceback (most recent call last):\n"
            '  File "vllm/v1/worker/worker.py", line 1, in determine_num_available_blocks\n'
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 31.25 GiB (GPU 0; 23.69 "
            "GiB total capacity; 15.2 GiB already allocated; 7.9 GiB free; 15.3 GiB reserved in total by "
            "PyTorch)\n"
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
