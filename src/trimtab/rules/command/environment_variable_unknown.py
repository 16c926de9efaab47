"""A variable is named like one of vLLM's, and no vLLM reads it.

What it does: looks up VLLM_ variables in the tables of all versions; what the text itself uses as $NAME is left alone.
Why it matters: nothing reads it; a setting that is meant to hold does not.
How to fix: take the name, or the flag, that the finding gives.
When to ignore: when a plug-in or a wrapper of vLLM reads it.
Sources: vllm/envs.py of vLLM 0.4 to 0.33 (environment_variables, validate_environ).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from trimtab.engine.command import EnvUse, Source
from trimtab.engine.flags import history
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

DEVICES = "CUDA_VISIBLE_DEVICES"
# Read by plug-ins, by wrappers and by the image's own scripts.
ELSEWHERE = ("VLLM_ASCEND_", "VLLM_OMNI_", "VLLM_GAUDI_", "VLLM_SPYRE_", "VLLM_NEURON_", "VLLM_HPU_", "VLLM_XLA_")
NEAR = 0.88


def check(context: CommandContext) -> Iterator[Finding]:
    if not words.serves(context):
        return
    for use in context.command.env.values():
        if is_ours(context, use.name):
            finding = judged(context, use)
            if finding is not None:
                yield finding


def is_ours(context: CommandContext, name: str) -> bool:
    """Whether the name looks like vLLM's or like the list of devices, and the text has no use of its own for it."""
    if name == DEVICES or name in used_by(context.command.source):
        return False
    return (name.startswith("VLLM_") and not name.startswith(ELSEWHERE)) or bool(
        get_close_matches(name, [DEVICES], 1, 0.92)
    )


@lru_cache(maxsize=4)
def used_by(source: Source) -> frozenset[str]:
    """The names of which the text takes the value."""
    return frozenset(re.findall(r"\$[({]?(\w+)", source.text))


def judged(context: CommandContext, use: EnvUse) -> Finding | None:
    """The finding on a name that this version does not read, None where it does or did."""
    span = history(use.name)
    if context.flags.variable(use.name) is not None or (span is not None and span.since is None):
        return None
    if span is not None and span.since is not None:
        if release(context.version)[:2] >= release(span.since):
            return None  # gone: another rule's
        text = msg(
            "{vllm} does not read {name}: it comes with vLLM {since}",
            zh="{vllm} 不读取 {name}：它从 vLLM {since} 才有",
            vllm=words.vllm(context),
            name=use.name,
            since=span.since,
        )
        return Finding(text, use.span)
    flag = "--" + use.name.removeprefix("VLLM_").lower().replace("_", "-")
    known = [DEVICES, *(v.name for v in context.flags.environment)]
    near = get_close_matches(use.name, known, 1, NEAR)
    instead = flag if context.flags.find(flag) is not None else near[0] if near else None
    if instead is None:
        text = msg("no vLLM reads {name}", zh="没有任何版本的 vLLM 读取 {name}", name=use.name)
        return Finding(text, use.span, severity=Severity.INFO)
    text = msg(
        "no vLLM reads {name}; what is meant may be {instead}",
        zh="没有任何版本的 vLLM 读取 {name}；可能想写的是 {instead}",
        name=use.name,
        instead=instead,
    )
    return Finding(text, use.span)


RULE = Rule(
    code="CMD703",
    name="environment-variable-unknown",
    severity=Severity.WARNING,
    summary=msg("No vLLM reads this variable.", zh="没有任何版本的 vLLM 读取这个环境变量。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",),
    bad=(
        Example("VLLM_LOGING_LEVEL=DEBUG vllm serve m\n", at="VLLM_LOGING_LEVEL=DEBUG", vllm="0.26"),
        Example("VLLM_MAX_MODEL_LEN=4096 vllm serve m\n", at="VLLM_MAX_MODEL_LEN=4096", vllm="0.26"),
        Example("CUDA_VISIBLE_DEVICE=0 vllm serve m\n", at="CUDA_VISIBLE_DEVICE=0", vllm="0.26"),
    ),
    good=(
        Example("VLLM_LOGGING_LEVEL=DEBUG CUDA_VISIBLE_DEVICES=0 vllm serve m\n", vllm="0.26"),
        Example("export VLLM_MODEL=m\nvllm serve $VLLM_MODEL\n", vllm="0.26"),
    ),
)
