"""The flag existed in older versions of vLLM and is gone in this one.

What it does: looks up until which version a flag was known, and what took its place.
Why it matters: vLLM refuses the whole command line with "unrecognized arguments", as for a misspelt flag.
How to fix: take the flag out, or write what the finding names in its place.
When to ignore: never with this version; name the version you run with --vllm when it was only assumed.
Sources: vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py of vLLM 0.4 to 0.33, compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse
from trimtab.engine.flags import history, successor
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for use in words.absent_flags(context):
        span, follower = history(use.name), successor(use.name)
        if span is None or span.until is None or not words.is_gone(context, use.name):
            continue
        if follower is not None and follower.same_value:
            continue  # a mere renaming has its own rule
        head = msg(
            "{flag} went with vLLM {gone} and {vllm} refuses it",
            zh="{flag} 在 vLLM {gone} 中被移除，{vllm} 会拒绝它",
            flag=use.spelling,
            gone=words.next_minor(span.until),
            vllm=words.vllm(context),
        )
        yield Finding(joined(head, follower.message if follower else None), use.span, mend(context, use))


def joined(head: Message, advice: Message | None) -> Message:
    """What is wrong, and what to do where that is known."""
    if advice is None:
        return head
    return msg("{head}: {advice}", zh="{head}：{advice}", head=head, advice=advice)


def mend(context: CommandContext, use: FlagUse) -> Fix | None:
    """Out with it: safe where nothing is needed in its place, only to be looked at where something else is."""
    follower = successor(use.name)
    if follower is not None and follower.to is not None:
        return None
    return context.remove(use, Grade.SAFE if follower else Grade.UNSAFE)


RULE = Rule(
    code="CMD002",
    name="flag-removed",
    severity=Severity.ERROR,
    summary=msg("The flag is gone in this version of vLLM.", zh="这个版本的 vLLM 已移除该参数。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/issues/18538",
    ),
    bad=(
        Example(
            "vllm serve m --swap-space 4 --port 8000\n",
            at="--swap-space 4",
            fixed="vllm serve m --port 8000\n",
            vllm="0.18",
        ),
        Example(
            "vllm serve m --enable-reasoning --reasoning-parser qwen3\n",
            at="--enable-reasoning",
            fixed="vllm serve m --reasoning-parser qwen3\n",
            vllm="0.10",
        ),
    ),
    good=(
        Example("vllm serve m --swap-space 4\n", vllm="0.17"),
        Example("vllm serve m --guided-decoding-backend xgrammar\n", vllm="0.12"),
    ),
)
