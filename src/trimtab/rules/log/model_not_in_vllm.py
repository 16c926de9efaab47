"""This vLLM has no code for the model's architecture.

What it does: looks for the registry's refusal, and checks that the architecture is not in the list which the same
    line prints: then its import failed, and another rule speaks.
Why it matters: an architecture comes with a version of vLLM; a newer Transformers alone does not bring it.
How to fix: take the vLLM that has it (`trimtab explain` and the linter know when each came), or the older one where
    it was dropped; for embedding checkpoints look whether --runner pooling knows the class.
When to ignore: never; there is no code to run the model.
Sources: vllm/model_executor/models/registry.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.command import model_newer_than_vllm
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, FactMissing, Finding, Rule, Severity

SAYS = (
    r"Model architectures? '?\[?(?P<name>[^\]]*?)\]?'? (?:are|is) not supported(?: for now| anymore| by \w+)?",
    r"(?P<name>\w+) has no vLLM implementation",
    r"The Transformers implementation of '?(?P<name>\w+)'? is not compatible with vLLM",
    (
        r"Model architecture (?P<name>\w+) was supported in vLLM until|Model architecture (?P<out>\w+) is not "
        r"supported in-tree"
    ),
    (
        r"(?:MoE )?Model (?P<name>\w+) does not support BitsAndBytes quantization|models with FusedMoE is not "
        r"supported"
    ),
    r"Cannot find model module\. '?(?P<name>\w+)'?",
    r"No model architectures are specified",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        yield from too_old(context)
        return
    if context.first(r"[Ee]rror in inspecting model architecture"):
        return
    named = (words.group(hit, "name") or words.group(hit, "out")).strip("'\" ")
    listed = hit.entry.text.partition("Supported architectures:")[2]
    if named and f"'{named}'" in listed:
        return
    vllm = context.version
    confidence = LIKELY if context.first(NEARER) else SURE
    if named and vllm:
        message = msg("vLLM {vllm} has no code for {name}", zh="vLLM {vllm} 没有 {name} 的代码", vllm=vllm, name=named)
    else:
        message = msg(
            "this vLLM has no code for the model: {said}", zh="此 vLLM 没有该模型的代码：{said}", said=words.said(hit)
        )
    yield context.finding(hit, message, confidence)


UNKNOWN_TYPE = r"but Transformers does not recognize this architecture"


def too_old(context: LogContext) -> Iterator[Finding]:
    """Transformers does not know the model's type, and the launch tells that this vLLM does not either."""
    hit = context.first(UNKNOWN_TYPE)
    if hit is None or context.launch is None:
        return
    try:
        newer = next(iter(model_newer_than_vllm.check(context.launch)), None)
    except FactMissing:
        return
    if newer is not None:
        yield context.finding(hit, newer.message, SURE)


NEARER = r"undefined symbol|ImportError|ModuleNotFoundError|cannot open shared object|invalid literal for int"
"""An error of the import itself, which makes vLLM call the model unsupported."""


RULE = Rule(
    code="LOG220",
    name="model-not-in-vllm",
    severity=Severity.ERROR,
    summary=msg("This vLLM has no code for the model's architecture.", zh="此 vLLM 没有该模型架构的代码。"),
    check=check,
    cause=Cause.MODEL_NOT_IN_VLLM,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/models/registry.py",),
    bad=(
        Example(
            "ValueError: Model architectures ['NoSuchForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['LlamaForCausalLM'])\n"
        ),
        Example(
            "ValueError: NoSuchForCausalLM has no vLLM implementation and the Transformers implementation is "
            "not compatible with vLLM.\n"
        ),
    ),
    good=(
        Example(
            "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['LlamaForCausalLM'])\n"
        ),
    ),
)
