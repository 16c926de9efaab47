"""vLLM fails while it builds the layers of the model's class.

What it does: speaks where a traceback ends inside a constructor of vLLM's model classes; rules that know the error
    come first.
Why it matters: The class is there, but not for this form of the checkpoint: a quantisation, a layer or a config field
    that this version does not build.
How to fix: try a newer vLLM, or the same model in another form (another quantisation, bfloat16).
When to ignore: where another finding names the error.
Sources: vllm/model_executor/models, vLLM 0.26; vllm/model_executor/model_loader.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import VAGUE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    frame = r"model_executor/models/(?P<file>\w+)\.py\W.*in __init__"
    hit = context.first(frame) or context.framed(frame)
    if hit is None or context.facts.served:
        return
    yield context.finding(
        hit,
        msg(
            "this vLLM cannot build the model from this form of its checkpoint (models/{file}.py): try a "
            "newer one, or the model "
            "in another form",
            zh="该版本的 vLLM 无法从这种形式的权重构建模型（models/{file}.py）：请试较新的版本，或换用其他形式的权重",
            file=hit["file"],
        ),
        VAGUE,
    )


RULE = Rule(
    code="LOG166",
    name="model-class-not-built",
    severity=Severity.ERROR,
    summary=msg("vLLM fails while it builds the layers of the model's class.", zh="vLLM 在构建模型的网络层时失败。"),
    check=check,
    cause=Cause.MODEL_NOT_IN_VLLM,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/model_loader/utils.py",),
    bad=(
        Example(
            "Traceback (most recent call last):\n"
            '  File "vllm/model_executor/models/bamba.py", line 256, in __init__\n'
            "    self.in_proj = MergedColumnParallelLinear(\n"
            "KeyError: 7\n",
            at="line 4: KeyError: 7",
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [model.py:733] Resolved architecture: LlamaForCausalLM\n"),),
)
