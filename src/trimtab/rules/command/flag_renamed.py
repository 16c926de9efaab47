"""The flag has another name in this version of vLLM and takes the same value.

What it does: looks up which flag took the place of one that is gone, where its value can stay as it is.
Why it matters: vLLM refuses the old name with "unrecognized arguments".
How to fix: write the new name; the value stays.
When to ignore: never with this version; name the version you run with --vllm when it was only assumed.
Sources: vllm/engine/arg_utils.py of vLLM 0.10 to 0.13, where the old names forward to the new ones before they go.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.editing import rename_flag
from trimtab.engine.flags import history, successor
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for use in words.absent_flags(context):
        span, follower = history(use.name), successor(use.name)
        if follower is None or follower.to is None or not follower.same_value:
            continue
        if span is None or span.until is None or not words.is_gone(context, use.name):
            continue
        if context.flags.find(follower.to) is None:
            continue
        yield Finding(
            msg(
                "{flag} is called {new} from vLLM {since} on; {vllm} refuses the old name",
                zh="从 vLLM {since} 起 {flag} 改名为 {new}；{vllm} 会拒绝旧名",
                flag=use.spelling,
                new=follower.to,
                since=words.next_minor(span.until),
                vllm=words.vllm(context),
            ),
            use.spelling_span,
            Fix(tuple(rename_flag(context.command, use.name, follower.to.lstrip("-")))),
        )


RULE = Rule(
    code="CMD003",
    name="flag-renamed",
    severity=Severity.ERROR,
    summary=msg("The flag has another name in this version of vLLM.", zh="该参数在这个版本的 vLLM 中已改名。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.11.2/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.12.0/vllm/engine/arg_utils.py",
    ),
    bad=(
        Example(
            "vllm serve m --guided-decoding-backend xgrammar\n",
            at="--guided-decoding-backend",
            fixed="vllm serve m --structured-outputs-config.backend xgrammar\n",
            vllm="0.12",
        ),
        Example(
            "vllm serve m --num-redundant-experts=32 --enable-eplb\n",
            at="--num-redundant-experts",
            fixed="vllm serve m --eplb-config.num_redundant_experts=32 --enable-eplb\n",
            vllm="0.12",
        ),
    ),
    good=(
        Example("vllm serve m --guided-decoding-backend xgrammar\n", vllm="0.10"),
        Example("vllm serve m --structured-outputs-config.backend xgrammar\n", vllm="0.12"),
    ),
)
