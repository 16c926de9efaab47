"""This vLLM does not register the model's architecture yet.

What it does: looks the architecture of the model's config up among those that this release registers.
Why it matters: before 0.7.3 vLLM stops with "Model architectures are not supported for now"; later releases hand an
    unknown architecture to Transformers, which then seldom knows it either, or runs it slowly.
How to fix: take the release in the message, the first seen to register it.
When to ignore: when a plug-in registers the architecture, or the Transformers back end is meant (--model-impl).
Sources: vllm/model_executor/models/registry.py of every release read (models/__init__.py before 0.6).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import first_release, registered
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

TRANSFORMERS_SINCE = "0.7.3"


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.get("model-impl") in ("transformers", "terratorch") or context.command.last("hf-overrides"):
        return
    architecture = context.require_config().architecture
    first = first_release(architecture)
    if first is None or registered(architecture, context.version) is not False:
        return
    if release(first) < release(context.version):
        return  # an architecture that went away
    yield Finding(
        msg(
            "vLLM {version} does not know {architecture}; {first} does",
            zh="vLLM {version} 不支持 {architecture}；{first} 支持",
            version=context.version,
            architecture=architecture,
            first=first,
        ),
        context.place("model"),
        severity=Severity.WARNING if context.at_least(TRANSFORMERS_SINCE) else None,
    )


RULE = Rule(
    code="CMD304",
    name="model-newer-than-vllm",
    severity=Severity.ERROR,
    summary=msg("This vLLM does not register the model's architecture yet.", zh="该版本的 vLLM 还不支持此模型架构。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/model_executor/models/registry.py",),
    bad=(Example("vllm serve m\n", at="m", vllm="0.6.6", model="qwen3-30b-a3b"),),
    good=(Example("vllm serve m\n", vllm="0.10.2", model="qwen3-30b-a3b"),),
)
