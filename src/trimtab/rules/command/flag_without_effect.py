"""vLLM of this version takes the flag and does nothing with it.

What it does: marks flags that the version's parser keeps only so that old commands still start, and those that act
    on one engine alone (V0 or V1) while the other is sure to run.
Why it matters: what the flag was given for does not happen, and nothing in the log says so.
How to fix: take the flag out; the finding names what does the work now, where something does.
When to ignore: when one command serves several versions of vLLM.
Sources: vllm/engine/arg_utils.py and vllm/config/cache.py of vLLM 0.6 to 0.33 (no reader of the value is left); who
    reads a value, in all modules of 0.6 to 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.flags import FlagSpec, successor
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


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
    """Whether nothing in this version, or in the engine that it is sure to run, reads the flag."""
    running = _engine(context)
    other = spec.engine is not None and running is not None and spec.engine != running
    return spec.no_op or (other and not (running == "V1" and "V1" in spec.unsupported))  # V1 then refuses it aloud


def _engine(context: CommandContext) -> str | None:
    """The engine that runs: the only one, or the one that VLLM_USE_V1 names; None where vLLM decides later."""
    if " " not in context.flags.engines:
        return context.flags.engines
    return {"0": "V0", "1": "V1"}.get(context.env("VLLM_USE_V1") or "")


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
            "VLLM_USE_V1=1 vllm serve m --swap-space 4\n",
            at="--swap-space 4",
            fixed="VLLM_USE_V1=1 vllm serve m\n",
            vllm="0.9",
        ),
        Example(
            "vllm serve m --use-v2-block-manager\n",
            at="--use-v2-block-manager",
            fixed="vllm serve m\n",
            vllm="0.6",
        ),
    ),
    good=(
        Example("vllm serve m --swap-space 4\n", vllm="0.6"),
        Example("vllm serve m --swap-space 4\n", vllm="0.9"),
        Example("VLLM_USE_V1=1 vllm serve m --num-scheduler-steps 8\n", vllm="0.9"),
    ),
)
