"""More than one partial prefill at a time is asked for, which the V1 engine does not do.

What it does: says when --max-num-partial-prefills or --max-long-partial-prefills is given a value other than 1.
Why it matters: from 0.12 on vLLM refuses it ("Concurrent Partial Prefill is not supported"); the scheduler of V1 never
    read the flags.
How to fix: take the flags out; --long-prefill-token-threshold bounds what a long prompt takes of a step.
When to ignore: never; the check is vLLM's own.
Sources: vllm/engine/arg_utils.py, 0.12 to 0.26 (_check_feature_supported).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

FLAGS = ("max-num-partial-prefills", "max-long-partial-prefills")


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if spec.name.removeprefix("--") not in FLAGS or context.integer(use.name, 1) == 1:
            continue
        yield Finding(
            msg(
                "{vllm} refuses {flag}: its engine computes one partial prefill at a time",
                zh="{vllm} 拒绝 {flag}：引擎一次只做一个部分预填充",
                vllm=words.vllm(context),
                flag=use.spelling,
            ),
            use.span,
            context.remove(use, Grade.SAFE),
        )


RULE = Rule(
    code="CMD025",
    name="partial-prefills-unsupported",
    severity=Severity.ERROR,
    since="0.12",
    until="0.26",
    summary=msg(
        "More than one partial prefill at a time is asked for, which the V1 engine does not do.",
        zh="要求同时进行多个部分预填充，V1 引擎不支持。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/engine/arg_utils.py",),
    bad=(
        Example(
            "vllm serve m --max-num-partial-prefills 4\n",
            at="--max-num-partial-prefills 4",
            fixed="vllm serve m\n",
            vllm="0.26",
        ),
    ),
    good=(Example("vllm serve m --max-num-partial-prefills 1\n", vllm="0.26"),),
)
