"""Names or shapes of the checkpoint's tensors are not those of the model's class.

What it does: looks for the loader's refusals: a shape that differs, a tensor that the model does not have, parameters
    that no file filled.
Why it matters: config.json and weights are not of the same model or version (a fine-tune saved otherwise, an adapter,
    a quantised copy with another's config), or this vLLM maps the names of an older layout.
How to fix: take config.json and weights from the same revision; for a fine-tune save it with the base model's
    library; try a newer vLLM for a new model.
When to ignore: never; weights that do not fit were refused.
Sources: vllm/model_executor/models/utils.py, model_loader/weight_utils.py and layers/linear.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Trying to set a tensor of shape .{1,80}which has shape",
    r"assert (?:loaded_weight|param(?:_data)?)\.(?:shape|size)\b",
    r"There is no module or parameter named '?\S+'? in \w+",
    r"Following weights were not (?:initialized|loaded) from checkpoint",
    r"Attempted to load weight \(.*\) into parameter \(",
    r"Tried to load weights of size .*to a parameter of size",
    r"size mismatch for \S+",
    r"(?:Loaded|loaded) weight shape .* (?:does not match|!=)",
    r"Parameter \S+ not found in (?:the model|params_dict)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit, confidence = context.first(*SAYS), SURE
    if hit is None:
        framed = context.framed(LOADER) or context.first(TENSOR)
        if framed is None or not re.match(REFUSED, framed.entry.text):
            return
        hit, confidence = framed, LIKELY
    message = msg(
        "the checkpoint's tensors are not those of the model's class: {said}",
        zh="权重张量与模型类不符：{said}",
        said=hit.entry.text[:240],
    )
    yield context.finding(hit, message, confidence)


TENSOR = (
    r"^KeyError: '(?:\w+\.\w+\.(?:bitmask|compressed|shape|row_offsets|SCB|absmax|quant_map|g_idx|qscale\w*)"
    r"|(?:model|language_model|transformer|visual|vision_\w+|lm_head)\.[\w.]+"
    r"|(?:\w+\.)*(?:layers|blocks?|h|encoder|decoder)\.\d+\.[\w.]+"
    r"|(?:\w+\.)+(?:weight|bias|qweight|qzeros|scales|weight_scale\w*|weight_packed|weight_zero_point))'"
)
LOADER = r"in (?:load_weights|_load_module|_load_param|\w*weight_loader\w*|load_\w+_parallel_weight)\b"
REFUSED = (
    r"AssertionError|KeyError: '?[\w.]+|RuntimeError: The (?:size of tensor|expanded size)"
    r"|AttributeError: .*weight_loader"
)


RULE = Rule(
    code="LOG208",
    name="weights-mismatch",
    severity=Severity.ERROR,
    summary=msg(
        "Names or shapes of the checkpoint's tensors are not those of the model's class.",
        zh="权重张量的名称或形状与模型类不符。",
    ),
    check=check,
    cause=Cause.WEIGHTS_MISMATCH,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/utils.py",),
    bad=(
        Example("ValueError: There is no module or parameter named 'lm_head.bias' in LlamaForCausalLM\n"),
        Example(
            "ValueError: Following weights were not initialized from checkpoint: "
            "{'model.layers.30.mlp.down_proj.weight'}\n"
        ),
        Example(
            "Traceback (most recent call last):\n"
            '  File "/site-packages/vllm/model_executor/layers/linear.py", line 7, in weight_loader\n'
            "    assert param_data.shape == loaded_weight.shape\nAssertionError\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [default_loader.py:501] Loading weights took 0.99 seconds\n"),),
)
