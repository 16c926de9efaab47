"""The adapter is of a kind, or for a model, that vLLM's LoRA does not do.

What it does: reads vLLM's refusals of models without LoRA, of modules, vocabularies, biases and DoRA.
Why it matters: only linear layers that vLLM has kernels for can carry an adapter.
How to fix: merge the adapter into the model (`peft`: merge_and_unload) and serve the result, or train it again on the
    modules that the message names.
When to ignore: never; the adapter was refused.
Sources: vllm/lora/models.py (lora_model.py), peft_helper.py, layers; vllm/model_executor/model_loader/utils.py, vLLM
    0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"[Mm]odel \S+ (?:does not support LoRA|is not supported for LoRA)|does not support LoRA(?:,| yet)| LoRA "
        r"is not supported"
    ),
    r"expected target modules in|is unsupported LoRA weight|Unsupported base layer",
    (
        r"vLLM (?:only supports modules_to_save|does not (?:yet )?support (?:DoRA|LoRA bias|init_lora_weights))|"
        r"does not (?:yet )?support DoRA|modules_to_save"
    ),
    r"LoRA added vocab size|When using LoRA, vocab size must be|Adapter bias (?:cannot be used|is not supported)",
    (
        r"[Nn]o (?:supported )?(?:LoRA modules found|free (?:lora|LoRA|adapter) slots)|Number of requested "
        r"(?:LoRAs|models) \(\d+\) is greater"
    ),
    r"embedding LoRA size\(|for Fused MoE LoRA|LoRA(?: scale)? weights must have|is unsupported format$",
    (
        r"Missing required configuration fields: .*|LoRA rank `r` must be a positive|"
        r"All LoRA weights must have the same stride|To support LoRA "
        r"for MoE model"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "this adapter or model does not go with vLLM's LoRA: {said}",
            zh="此适配器或模型不被 vLLM 的 LoRA 支持：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))
        return
    guess = words.guessed(context, OF_LORA, LORA)
    if guess is not None:
        message = msg(
            "probably this adapter does not go with vLLM's LoRA, whose code raised {said}",
            zh="可能是此适配器不被 vLLM 的 LoRA 支持，其代码报错 {said}",
            said=words.quoted(guess),
        )
        yield context.finding(guess, message, HUNCH, severity=words.by_request(context))


OF_LORA = r"\bLoRAs?\b|\blora_\w+|PEFT|\b[Aa]dapter\b"
LORA = r"vllm[/\\]lora[/\\]"


RULE = Rule(
    code="LOG505",
    name="lora-not-supported",
    severity=Severity.ERROR,
    summary=msg(
        "The adapter is of a kind, or for a model, that vLLM's LoRA does not do.",
        zh="vLLM 的 LoRA 不支持这种适配器或该模型。",
    ),
    check=check,
    cause=Cause.LORA_UNSUPPORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/lora/peft_helper.py",),
    bad=(
        Example(
            "ValueError: While loading /models/a, expected target modules in ['q_proj'] but received "
            "['lm_head']. Please verify that the loaded LoRA module is correct\n"
        ),
        Example("ValueError: vLLM does not yet support DoRA.\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [punica.py:1] Using PunicaWrapperGPU.\n"),),
)
