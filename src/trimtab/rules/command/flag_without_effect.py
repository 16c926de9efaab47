"""vLLM of this version takes the flag and does nothing with it.

What it does: marks flags that the version's parser keeps only so that old commands still start.
Why it matters: what the flag was given for does not happen, and nothing in the log says so.
How to fix: take the flag out; the finding names what does the work now, where something does.
When to ignore: when one command serves several versions of vLLM.
Sources: vllm/engine/arg_utils.py and vllm/config/cache.py of vLLM 0.6 to 0.33 (no reader of the value is left).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.flags import FlagSpec, successor
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

# Read nowhere but in the check against the host's memory, from the version on that has no V0 engine left.
SWAP_UNREAD_SINCE = (0, 11)


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if not without_effect(context, spec):
            continue
        head = msg(
            "{vllm} takes {flag} and ignores it",
            zh="{vllm} 接受 {flag}，但会忽略它",
            vllm=words.vllm(context),
            flag=use.spelling,
        )
        follower = successor(spec.name)
        if follower is not None:
            head = msg("{head}: {advice}", zh="{head}：{advice}", head=head, advice=follower.message)
        yield Finding(head, use.span, context.remove(use))


def without_effect(context: CommandContext, spec: FlagSpec) -> bool:
    """Whether nothing in this version reads the flag."""
    return spec.no_op or (spec.name == "--swap-space" and release(context.version) >= SWAP_UNREAD_SINCE)


RULE = Rule(
    code="CMD004",
    name="flag-without-effect",
    severity=Severity.WARNING,
    summary=msg("vLLM takes the flag and ignores it.", zh="vLLM 接受该参数但会忽略它。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.17.1/vllm/config/cache.py",
        "https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/engine/arg_utils.py",
    ),
    bad=(
        Example("vllm serve m --swap-space 4\n", at="--swap-space 4", fixed="vllm serve m\n", vllm="0.13"),
        Example(
            "vllm serve m --use-v2-block-manager\n",
            at="--use-v2-block-manager",
            fixed="vllm serve m\n",
            vllm="0.6",
        ),
    ),
    good=(Example("vllm serve m --swap-space 4\n", vllm="0.6"),),
)
