"""The flag still works in this version of vLLM and is announced to go.

What it does: marks flags that vLLM itself calls deprecated.
Why it matters: the same command does not start after an update of vLLM.
How to fix: write what vLLM names in its place, while both are there.
When to ignore: when this vLLM is pinned and will not be updated.
Sources: vllm/engine/arg_utils.py (`deprecated=True` and help texts), vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.engine.editing import rename_flag
from trimtab.engine.flags import FlagSpec, successor
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if spec.deprecated and not spec.no_op:
            yield Finding(said(context, use, spec), use.span, mend(context, use))


def said(context: CommandContext, use: FlagUse, spec: FlagSpec) -> Message:
    """That it is deprecated, until when, and what is to be written."""
    head = msg(
        "{flag} is deprecated in {vllm}",
        zh="{flag} 在 {vllm} 中已弃用",
        flag=use.spelling,
        vllm=words.vllm(context),
    )
    if spec.removal:
        head = msg(
            "{head} and announced to go with {removal}",
            zh="{head}，预告在 {removal} 移除",
            head=head,
            removal=spec.removal,
        )
    follower = successor(use.name)
    if follower is None:
        return head
    return msg("{head}: {advice}", zh="{head}：{advice}", head=head, advice=follower.message)


def mend(context: CommandContext, use: FlagUse) -> Fix | None:
    """The new name, where this version has it and the value may stay."""
    follower = successor(use.name)
    if follower is None or follower.to is None or not follower.same_value or context.flags.find(follower.to) is None:
        return None
    return Fix(tuple(rename_flag(context.command, use.name, follower.to.lstrip("-"))))


RULE = Rule(
    code="CMD009",
    name="flag-deprecated",
    severity=Severity.INFO,
    summary=msg("The flag is announced to go.", zh="该参数已弃用，将被移除。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.11.2/vllm/engine/arg_utils.py",),
    bad=(
        Example("vllm serve m --disable-log-requests\n", at="--disable-log-requests", vllm="0.12"),
        Example(
            "vllm serve m --override-pooler-config '{}'\n",
            at="--override-pooler-config '{}'",
            fixed="vllm serve m --pooler-config '{}'\n",
            vllm="0.11",
        ),
    ),
    good=(Example("vllm serve m --disable-log-requests\n", vllm="0.9"),),
)
