"""A variable is set that older versions of vLLM read and this one does not.

What it does: looks up until which version vLLM's envs.py had each variable that the command gets.
Why it matters: nothing reads it any more and nothing says so; vLLM runs with its default.
How to fix: write the flag that took its place, where the finding names one, and take the variable out.
When to ignore: when the same environment serves an older vLLM.
Sources: vllm/envs.py of vLLM 0.4 to 0.33, compared; vllm/config/attention.py of 0.14; vLLM issue 50292.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Edit, EnvUse, Span
from trimtab.engine.editing import set_flag
from trimtab.engine.flags import history, successor
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity
from trimtab.rules.runner import release

# Read by a first patch release, gone in the last one, whose table serves the whole minor version.
STILL_READ = {"VLLM_USE_V1": (0, 11, 0)}


def check(context: CommandContext) -> Iterator[Finding]:
    for use in context.command.env.values():
        span = history(use.name) if use.name.isupper() else None
        if span is None or span.until is None or not words.is_gone(context, use.name):
            continue
        if context.flags.variable(use.name) is not None or release(context.version) == STILL_READ.get(use.name):
            continue
        follower = successor(use.name)
        head = msg(
            "{vllm} no longer reads {name}; it went with {gone}",
            zh="{vllm} 不再读取 {name}；它在 {gone} 中被移除",
            vllm=words.vllm(context),
            name=use.name,
            gone=words.next_minor(span.until),
        )
        if follower is not None:
            head = msg("{head}: {advice}", zh="{head}：{advice}", head=head, advice=follower.message)
        yield Finding(head, use.span, mend(context, use))


def mend(context: CommandContext, use: EnvUse) -> Fix | None:
    """The flag in place of the variable, where the variable stands right in front of the command."""
    follower, source, span = successor(use.name), context.command.source, context.command.span
    if follower is None or not (span.start <= use.span.start and use.span.end <= span.end):
        return None
    if context.command.container is not None or use.unknown or use.value is None:
        return None
    end = use.span.end
    while source.data[end : end + 1] == b" ":
        end += 1
    gone = Edit(Span(use.span.start, end), "")
    if follower.to is None:
        return Fix((gone,), Grade.SAFE)
    if not follower.same_value or context.flags.find(follower.to) is None:
        return None
    flag = follower.to.lstrip("-")
    if context.command.all(flag):
        return Fix((gone,), Grade.SAFE)
    return Fix((gone, *set_flag(context.command, flag, use.value)), Grade.UNSAFE)


RULE = Rule(
    code="CMD701",
    name="environment-variable-removed",
    severity=Severity.WARNING,
    summary=msg("vLLM no longer reads this variable.", zh="vLLM 已不再读取这个环境变量。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.14.1/vllm/config/attention.py",
        "https://github.com/vllm-project/vllm/issues/50292",
    ),
    bad=(
        Example(
            "VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve m --port 8000\n",
            at="VLLM_ATTENTION_BACKEND=TRITON_ATTN",
            fixed="vllm serve m --port 8000 --attention-backend TRITON_ATTN\n",
            vllm="0.26",
        ),
        Example("VLLM_USE_V1=1 vllm serve m\n", at="VLLM_USE_V1=1", fixed="vllm serve m\n", vllm="0.26"),
        Example("export VLLM_USE_V1=1\nvllm serve m\n", at="VLLM_USE_V1=1", vllm="0.26"),
    ),
    good=(
        Example("VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve m\n", vllm="0.11"),
        Example("VLLM_LOGGING_LEVEL=DEBUG vllm serve m\n", vllm="0.26"),
    ),
)
