"""vLLM has the model's class, but could not import it.

What it does: looks for the failed inspection of a model's class, and for an architecture called unsupported that the
    same line lists as supported.
Why it matters: the class is imported in a process of its own; whatever fails there, from a wrong torch to a missing
    package, ends in a line that says the model is not supported.
How to fix: read the traceback above the line; run `python -m vllm.model_executor.models.registry` or import the
    model's module by hand to see the error; install vLLM anew in a clean environment.
When to ignore: when another finding names the import's own error: mend that.
Sources: vllm/model_executor/models/registry.py, vLLM 0.6 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import LIKELY, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Ee]rror in inspecting model architecture '(?P<name>\w+)'",
    r"Model architectures? \[?'?(?P<name>\w+)'?.{0,200}failed to be inspected",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        hit = next((h for h in context.find(REFUSED) if f"'{h['name']}'" in h.entry.text[h.match.end() :]), None)
    if hit is None:
        return
    message = msg(
        "vLLM has {name}, but importing it failed; the error stands above this line",
        zh="vLLM 有 {name}，但导入失败；错误在这一行之上",
        name=hit["name"],
    )
    yield context.finding(hit, message, LIKELY)


REFUSED = r"Model architectures \['(?P<name>\w+)'[^\]]*\] are not supported for now\. Supported architectures:"


RULE = Rule(
    code="LOG221",
    name="model-class-import-failed",
    severity=Severity.ERROR,
    summary=msg("vLLM has the model's class, but could not import it.", zh="vLLM 有该模型的类，但无法导入。"),
    check=check,
    cause=Cause.MODEL_CLASS_IMPORT_FAILED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/registry.py",),
    bad=(
        Example("ERROR 10-26 11:35:32 registry.py:267] Error in inspecting model architecture 'LlamaForCausalLM'\n"),
        Example(
            "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['AquilaModel', 'LlamaForCausalLM'])\n"
        ),
    ),
    good=(
        Example(
            "ValueError: Model architectures ['NoSuchForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['LlamaForCausalLM'])\n"
        ),
    ),
)
