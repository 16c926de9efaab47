"""bitsandbytes needs both its quantisation and its load format in older vLLM.

What it does: up to vLLM 0.7, looks for one of `--quantization bitsandbytes` and `--load-format bitsandbytes` alone.
Why it matters: vLLM refuses either without the other.
How to fix: write both, or take vLLM 0.8 or newer.
When to ignore: never; the check is vLLM's own and stops the start.
Sources: vllm/engine/arg_utils.py (create_engine_config) of vLLM 0.5.5 to 0.7.3; vLLM issue 4776.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.editing import set_flag
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Rule, Severity

METHOD = "bitsandbytes"


def check(context: CommandContext) -> Iterator[Finding]:
    quantisation, form = context.command.last("quantization"), context.command.last("load-format")
    if not words.serves(context) or not words.is_complete(context):
        return
    given = [use for use in (quantisation, form) if use is not None and use.value == METHOD]
    if len(given) != 1:
        return
    missing = "load-format" if given[0] is quantisation else "quantization"
    yield Finding(
        msg(
            "{vllm} takes {flag} bitsandbytes only together with --{missing} bitsandbytes",
            zh="{vllm} 要求 {flag} bitsandbytes 与 --{missing} bitsandbytes 一起使用",
            vllm=words.vllm(context),
            flag=given[0].spelling,
            missing=missing,
        ),
        given[0].span,
        Fix(tuple(set_flag(context.command, missing, METHOD))),
    )


RULE = Rule(
    code="CMD022",
    name="load-format-without-quantisation",
    severity=Severity.ERROR,
    summary=msg(
        "bitsandbytes needs both its quantisation and its load format.",
        zh="bitsandbytes 需要同时指定量化方法和加载格式。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.7.3/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/issues/4776",
    ),
    bad=(
        Example(
            "vllm serve m --quantization bitsandbytes\n",
            at="--quantization bitsandbytes",
            fixed="vllm serve m --quantization bitsandbytes --load-format bitsandbytes\n",
            vllm="0.6",
        ),
    ),
    good=(
        Example("vllm serve m --quantization bitsandbytes --load-format bitsandbytes\n", vllm="0.6"),
        Example("vllm serve m --quantization bitsandbytes\n", vllm="0.9"),
    ),
    until="0.7",
)
