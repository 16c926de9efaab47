"""The command holds a flag that this vLLM no longer has.

What it does: reads what argparse calls unrecognized and looks it up in the tables of all versions: a flag that older
    ones had.
Why it matters: argparse ends the start at the first word that it does not know, before anything loads: a container
    restarts for ever.
How to fix: take the flag out, or write its successor, which the finding names; `trimtab lint` checks the whole
    command against the version.
When to ignore: never; the server did not start.
Sources: CPython's argparse; the flag tables in trimtab.engine.flags, made from vLLM's own parsers 0.2 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import arguments
from trimtab.rules.log.context import EVERYWHERE, SURE, LogContext
from trimtab.rules.log.fixes import remove_flag
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (r"error: unrecognized arguments?: (?P<words>.+)",)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        yield from inert(context)
        return
    for flag in arguments.of_kind(context, hit, arguments.Kind.REMOVED):
        after = arguments.successor_of(flag.name)
        if after:
            message = msg(
                "vLLM has had no flag {flag} since {version}; {after} took its place",
                zh="vLLM 自 {version} 起不再有参数 {flag}；由 {after} 取代",
                flag=flag.spelling,
                version=flag.gone_in,
                after=after,
            )
        else:
            message = msg(
                "vLLM has had no flag {flag} since {version}: take it out",
                zh="vLLM 自 {version} 起不再有参数 {flag}：请删去",
                flag=flag.spelling,
                version=flag.gone_in,
            )
        yield context.finding(hit, message, SURE, fix=remove_flag(context, flag.name))
        return


INERT = r"\[DEPRECATED\].{0,200}(?P<flag>--[\w-]+)[^.]{0,60} has no effect"


def inert(context: LogContext) -> Iterator[Finding]:
    """A flag that is still taken and does nothing: the server runs."""
    hit = context.first(INERT, kinds=EVERYWHERE)
    if hit is not None:
        yield context.finding(
            hit,
            msg("{flag} has no effect any more", zh="{flag} 已不起作用", flag=hit["flag"]),
            SURE,
            fix=remove_flag(context, hit["flag"].lstrip("-")),
            severity=Severity.WARNING,
        )


RULE = Rule(
    code="LOG301",
    name="flag-refused",
    severity=Severity.ERROR,
    summary=msg("The command holds a flag that this vLLM no longer has.", zh="命令里有此 vLLM 已移除的参数。"),
    check=check,
    cause=Cause.FLAG_REMOVED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("usage: vllm serve [model_tag] [options]\nvllm: error: unrecognized arguments: --enable-reasoning\n"),
        Example("api_server.py: error: unrecognized arguments: --swap-space 4\n"),
        Example(
            "WARNING 11-30 03:43:16 [arg_utils.py:1] [DEPRECATED] Block manager v1 has been removed, and "
            "setting --use-v2-block-manager to True or False has no effect on vLLM behavior.\n"
        ),
    ),
    good=(Example("vllm: error: unrecognized arguments: --max-model-length 512\n"),),
)
