"""VLLM_USE_V1=1 demands the V1 engine, and a flag asks for what V1 of this version cannot do.

What it does: looks for flags that vLLM 0.8 to 0.10 would run on the V0 engine, while the command insists on V1.
Why it matters: vLLM stops at start with "VLLM_USE_V1=1 is not supported with ...".
How to fix: take the flag out, or take VLLM_USE_V1=1 out and let vLLM choose the engine.
When to ignore: never with these versions; name the version you run with --vllm when it was only assumed.
Sources: vllm/engine/arg_utils.py (`_is_v1_supported_oracle`, `_raise_or_fallback`) of vLLM 0.8.5, 0.9.2 and 0.10.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.engine.flags import FlagSpec
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

WHATEVER_VALUE = (
    "--logits-processor-pattern", "--disable-async-output-proc", "--scheduler-delay-factor", "--enable-prompt-adapter",
    "--enable-prompt-embeds", "--otlp-traces-endpoint", "--preemption-mode", "--num-scheduler-steps",
)  # fmt: skip
"""Refused with every value but the default; of the other flags that V1 looks at, some values are refused."""


def check(context: CommandContext) -> Iterator[Finding]:
    if context.env("VLLM_USE_V1") != "1":
        return
    for use, spec in words.known_flags(context):
        if spec.name not in WHATEVER_VALUE or "V1" not in spec.unsupported or _is_default(use, spec):
            continue
        yield Finding(
            msg(
                "the V1 engine of {vllm} does not support {flag}, and VLLM_USE_V1=1 forbids the V0 engine, which does",
                zh="{vllm} 的 V1 引擎不支持 {flag}，而 VLLM_USE_V1=1 又不允许使用支持它的 V0 引擎",
                vllm=words.vllm(context),
                flag=use.spelling,
            ),
            use.span,
            context.remove(use, Grade.UNSAFE),
        )


def _is_default(use: FlagUse, spec: FlagSpec) -> bool:
    """Whether it is written out as it would be without it; a value from outside the text may be."""
    if spec.is_switch:
        return use.negated
    return use.unknown or use.value is None or use.value == str(spec.default)


RULE = Rule(
    code="CMD026",
    name="flag-refused-by-v1",
    severity=Severity.ERROR,
    summary=msg(
        "VLLM_USE_V1=1 with a flag that the V1 engine cannot do.",
        zh="设了 VLLM_USE_V1=1，却使用 V1 引擎不支持的参数。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.10.2/vllm/engine/arg_utils.py",
    ),
    since="0.8",
    bad=(
        Example(
            "VLLM_USE_V1=1 vllm serve m --num-scheduler-steps 8\n",
            at="--num-scheduler-steps 8",
            fixed="VLLM_USE_V1=1 vllm serve m\n",
            vllm="0.9",
        ),
        Example(
            "VLLM_USE_V1=1 vllm serve m --enable-prompt-embeds\n",
            at="--enable-prompt-embeds",
            fixed="VLLM_USE_V1=1 vllm serve m\n",
            vllm="0.10",
        ),
    ),
    good=(
        Example("VLLM_USE_V1=1 vllm serve m --num-scheduler-steps 1\n", vllm="0.9"),
        Example("vllm serve m --num-scheduler-steps 8\n", vllm="0.9"),
        Example("VLLM_USE_V1=0 vllm serve m --num-scheduler-steps 8\n", vllm="0.9"),
        Example("VLLM_USE_V1=1 vllm serve m --enable-prompt-embeds\n", vllm="0.26"),
    ),
)
