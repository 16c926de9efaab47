"""The flag exists only from a later version of vLLM on.

What it does: looks up since which version a flag is known.
Why it matters: an older vLLM refuses the whole command line with "unrecognized arguments".
How to fix: take a vLLM that has the flag, or leave the flag out.
When to ignore: when a newer patch release of the same minor version brought it.
Sources: vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py of vLLM 0.4 to 0.33, compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.flags import history
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release


def check(context: CommandContext) -> Iterator[Finding]:
    for use in words.absent_flags(context):
        span = history(use.name)
        if use.negated or span is None or span.since is None:
            continue
        if release(context.version)[:2] >= release(span.since):
            continue
        yield Finding(
            msg(
                "{flag} comes with vLLM {since}; {vllm} refuses it",
                zh="{flag} 从 vLLM {since} 才有；{vllm} 会拒绝它",
                flag=use.spelling,
                since=span.since,
                vllm=words.vllm(context),
            ),
            use.span,
        )


RULE = Rule(
    code="CMD021",
    name="flag-newer-than-vllm",
    severity=Severity.ERROR,
    summary=msg("The flag exists only from a later version of vLLM on.", zh="该参数只在更新版本的 vLLM 中才有。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.8.5/vllm/engine/arg_utils.py",),
    bad=(
        Example("vllm serve m --data-parallel-size 2\n", at="--data-parallel-size 2", vllm="0.6"),
        Example("vllm serve m --speculative-config '{}'\n", at="--speculative-config '{}'", vllm="0.7"),
    ),
    good=(Example("vllm serve m --data-parallel-size 2\n", vllm="0.9"),),
)
