"""This vLLM, or this combination of options, does not do this speculation.

What it does: reads vLLM's refusals of a method, of draft models in engines that lack them, and of options beside
    speculation.
Why it matters: methods came one by one, and V1 lacked draft models from 0.8 to 0.14.
How to fix: take a method that this version has (ngram, eagle, mtp), leave out the option that the message names, or
    take a newer vLLM.
When to ignore: never; the start ended.
Sources: vllm/config/speculative.py, vllm/engine/arg_utils.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import HUNCH, SURE, LogContext
from trimtab.rules.log.fixes import remove_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"object has no attribute '(?:set_aux_hidden_state_layers|get_eagle3_\w+|\w*(?:draft|eagle|spec_decode|mtp)\w*)'",
    r"'SpeculativeConfig' object has no attribute",
    (
        r"[Ss]peculative decoding (?:with draft model )?(?:is|are) not (?:yet )?supported|[Dd]raft model "
        r"speculative decoding is not supported"
    ),
    (
        r"[Ss]peculative decoding (?:and|requires|is not)\b.{0,120}(?:mutually exclusive|V2 block manager|"
        r"supported|compatible)"
    ),
    (
        r"Unsupported (?:speculative )?method: '?\w+'?|Unsupported speculative method|Invalid method \w+\. "
        r"Supported methods"
    ),
    (
        r"(?:[Ee]agle3?|EAGLE3?|[Mm]edusa|\bMTP|DSpark|[Ss]peculat\w+|dflash|ngram).{0,80}(?:is only supported "
        r"for|only supports?|not (?:yet )?(?:supported|compatible)|does not support)"
    ),
    (
        r"(?:not (?:yet )?(?:supported|compatible)|only (?:supported )?(?:with|works with|"
        r"supports)).{0,100}(?:[Ss]peculative|EAGLE|[Ee]agle|\bMTP\b|draft model)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "this speculation is not done here: {said}", zh="此处不支持这种投机解码：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, confidence, fix=remove_flag(context, "speculative-config"))
        return
    guess = words.guessed(context, OF_SPECULATION, SPECULATION)
    if guess is not None:
        message = msg(
            "probably this speculation is not done here: vLLM's code for it raised {said}",
            zh="可能是此处不支持这种投机解码：相关代码报错 {said}",
            said=words.quoted(guess),
        )
        fix = remove_flag(context, "speculative-config")
        yield context.finding(guess, message, HUNCH, fix=fix, severity=words.by_request(context))


OF_SPECULATION = (
    r"num_speculative_tokens|[Ss]peculat|\b(?:Eagle|EAGLE|Medusa|DSpark|[Dd]rafter|[Dd]raft)|"
    r"'\w*(?:Propos|Draft|Specul)\w*' object|\bMTP\b"
)
SPECULATION = r"spec_decode[/\\]|config[/\\]speculative|models[/\\]\w*(?:eagle|mtp|medusa)\w*\.py"


RULE = Rule(
    code="LOG506",
    name="speculation-not-supported",
    severity=Severity.ERROR,
    summary=msg(
        "This vLLM, or this combination of options, does not do this speculation.",
        zh="此 vLLM 或该选项组合不支持这种投机解码。",
    ),
    check=check,
    cause=Cause.SPECULATIVE_UNSUPPORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/speculative.py",),
    bad=(
        Example(
            "NotImplementedError: Speculative decoding with draft model is not supported yet. Please "
            "consider using other speculative decoding methods such as ngram, medusa, eagle, or mtp.\n"
        ),
        Example(
            "ValueError: Eagle3 is only supported for ['llama', 'qwen'] models. Got "
            "self.target_model_config.hf_text_config.model_type='gpt2'\n"
        ),
    ),
    good=(
        Example(
            "INFO 11-30 03:43:16 [core.py:1] speculative_config=SpeculativeConfig(method='ngram', num_spec_tokens=3)\n"
        ),
    ),
)
