"""The command holds a flag that this vLLM never had.

What it does: reads what argparse calls unrecognized or ambiguous; says which known flag is nearest, or from which
    version on the flag exists.
Why it matters: argparse ends the start at the first word that it does not know, before anything loads.
How to fix: correct the spelling, or take a vLLM that has the flag; `trimtab lint` checks the whole command.
When to ignore: when a plug-in or a fork of vLLM brings the flag and should have been installed.
Sources: CPython's argparse; the flag tables in trimtab.engine.flags, made from vLLM's own parsers 0.2 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import arguments, words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

SAYS = (
    r"error: unrecognized arguments?: (?P<words>.+)",
    r"error: ambiguous option: (?P<words>\S+) could match (?P<full>.+)",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        return
    if words.group(hit, "full"):
        message = msg(
            "{flag} could be any of {full}", zh="{flag} 可能是 {full} 中的任何一个", flag=hit["words"], full=hit["full"]
        )
        yield context.finding(hit, message, SURE)
        return
    if next(iter(arguments.of_kind(context, hit, arguments.Kind.REMOVED, arguments.Kind.ELSEWHERE)), None):
        return
    for flag in arguments.of_kind(context, hit, arguments.Kind.NEWER, arguments.Kind.NEVER):
        if flag.since and context.version and release(context.version) >= release(flag.since):
            message = msg(
                "vLLM {version} has the flag {flag}, and what was started refuses it: that is another version, a fork "
                "or another entry point",
                zh="vLLM {version} 有参数 {flag}，而所启动的程序拒绝它：那是另一个版本、分支或另一个入口",
                flag=flag.spelling,
                version=context.version,
            )
        elif flag.since:
            message = msg(
                "this vLLM is too old for {flag}, which came with {version}",
                zh="此 vLLM 太旧，{flag} 从 {version} 起才有",
                flag=flag.spelling,
                version=flag.since,
            )
        elif flag.near:
            message = msg(
                "no vLLM has a flag {flag}; the nearest is {near}",
                zh="没有任何 vLLM 有参数 {flag}；最接近的是 {near}",
                flag=flag.spelling,
                near=flag.near,
            )
        else:
            message = msg("no vLLM has a flag {flag}", zh="没有任何 vLLM 有参数 {flag}", flag=flag.spelling)
        yield context.finding(hit, message, SURE)
        return


RULE = Rule(
    code="LOG302",
    name="flag-not-known",
    severity=Severity.ERROR,
    summary=msg("The command holds a flag that this vLLM never had.", zh="命令里有此 vLLM 从未有过的参数。"),
    check=check,
    cause=Cause.FLAG_UNKNOWN,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("vllm: error: unrecognized arguments: --max-model-length 512\n"),
        Example(
            "vllm serve: error: ambiguous option: --max-num could match --max-num-seqs, --max-num-batched-tokens\n"
        ),
    ),
    good=(Example("vllm: error: unrecognized arguments: --enable-reasoning\n"),),
)
