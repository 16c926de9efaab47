"""No vLLM knows this flag, or not in this spelling.

What it does: looks each flag up in the version's table, and in those of all other versions.
Why it matters: vLLM's argument parser stops at the first argument that it does not recognise, before anything loads.
How to fix: take the spelling that the finding names; `vllm serve --help=all` lists what the installed one has.
When to ignore: when a plug-in or a fork of vLLM adds the flag.
Sources: vllm/utils/argparse_utils.py (FlexibleArgumentParser), vLLM 0.26; argparse also takes unique abbreviations.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from trimtab.engine.abbreviated import beginnings
from trimtab.engine.command import FlagUse
from trimtab.engine.editing import rename_flag
from trimtab.engine.flags import history
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

TINY = 0.95  # one letter in twenty: a slip of the finger


def check(context: CommandContext) -> Iterator[Finding]:
    for use in words.absent_flags(context):
        full = beginnings(use.spelling, context.flags)
        if len(full) == 1 or (not use.negated and history(use.name) is not None):
            continue  # argparse completes it; or another version has it, which is another rule's
        near = [] if full else context.flags.nearest(use.name, 1)
        severity = Severity.WARNING if context.flags.unknown_newer else None
        yield Finding(said(context, use, full, near), use.spelling_span, mend(context, use, near), severity=severity)
    if words.serves(context) and not context.flags.accepts.underscores:
        yield from underscored(context)


def said(context: CommandContext, use: FlagUse, full: list[str], near: list[str]) -> Message:
    """The message: ambiguous, without that negation, or unknown."""
    vllm = words.vllm(context)
    if full:
        return msg(
            "{flag} could be any of {full} in {vllm}",
            zh="在 {vllm} 中 {flag} 可能是 {full} 中的任何一个",
            flag=use.spelling,
            full=", ".join(full[:4]),
            vllm=vllm,
        )
    if use.negated and context.flags.find(use.name):
        return msg(
            "{vllm} has --{name} but no {flag}",
            zh="{vllm} 有 --{name}，但没有 {flag}",
            vllm=vllm,
            name=use.name,
            flag=use.spelling,
        )
    if near:
        return msg(
            "{vllm} has no flag {flag}, nor has any other version; the nearest is {near}",
            zh="{vllm} 以及其他版本都没有参数 {flag}；最接近的是 {near}",
            vllm=vllm,
            flag=use.spelling,
            near=near[0],
        )
    return msg(
        "{vllm} has no flag {flag}, nor has any other version",
        zh="{vllm} 以及其他版本都没有参数 {flag}",
        vllm=vllm,
        flag=use.spelling,
    )


def mend(context: CommandContext, use: FlagUse, near: list[str]) -> Fix | None:
    """The nearest flag's name in place of this one; safe only where no more than a letter differs."""
    if not near or use.path or use.negated or use.words == ():
        return None
    wanted, known = use.name.replace("-", ""), near[0].lstrip("-").replace("-", "")
    alike = SequenceMatcher(None, wanted, known).ratio()
    edits = rename_flag(context.command, use.name, near[0].lstrip("-"))
    return Fix(tuple(edits), Grade.SAFE if alike >= TINY else Grade.UNSAFE)


def underscored(context: CommandContext) -> Iterator[Finding]:
    """Flags written with underscores where the parser takes dashes alone (vLLM 0.4)."""
    for use, spec in words.known_flags(context):
        if "_" in use.spelling and not use.path:
            yield Finding(
                msg(
                    "{vllm} takes {name} with dashes only, not {flag}",
                    zh="{vllm} 只接受用短横线书写的 {name}，不接受 {flag}",
                    vllm=words.vllm(context),
                    name=spec.name,
                    flag=use.spelling,
                ),
                use.spelling_span,
                Fix(tuple(rename_flag(context.command, use.name, spec.key))),
            )


RULE = Rule(
    code="CMD001",
    name="flag-unknown",
    severity=Severity.ERROR,
    summary=msg("No vLLM knows this flag.", zh="任何版本的 vLLM 都没有这个参数。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example(
            "vllm serve m --gpu-memory-utilisation 0.9\n",
            at="--gpu-memory-utilisation",
            fixed="vllm serve m --gpu-memory-utilization 0.9\n",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --max-model-length 4096\n",
            at="--max-model-length",
            fixed="vllm serve m --max-model-len 4096\n",
            vllm="0.26",
        ),
        Example("vllm serve m --no-enable-prefix-caching\n", at="--no-enable-prefix-caching", vllm="0.5"),
        Example(
            "vllm serve m --max_model_len 4096\n",
            at="--max_model_len",
            fixed="vllm serve m --max-model-len 4096\n",
            vllm="0.4",
        ),
        Example("vllm serve m --data-parallel-s 4\n", at="--data-parallel-s", vllm="0.26"),
    ),
    good=(
        Example("vllm serve m --gpu_memory_utilization 0.9 --no-enable-prefix-caching\n", vllm="0.26"),
        Example("vllm serve m --gpu-memory-util 0.9\n", vllm="0.26"),
        Example("vllm serve m --swap-space 4\n", vllm="0.26"),
        Example("vllm serve m --compilation-config.mode 3 -O3\n", vllm="0.26"),
    ),
)
