"""This vLLM, or the Transformers that it is installed with, does not know the model's architecture yet.

What it does: looks the architecture of the model's config (or of its name, among the models that vLLM's tests serve) up
    among those that this release registers; then whether its own tests want a Transformers for this architecture that
    the release refuses or that came out later; then whether its code takes the checkpoint's quantisation.
Why it matters: before 0.7.3 vLLM stops with "Model architectures are not supported for now"; later releases hand an
    unknown architecture to Transformers, which then seldom knows it either, or runs it slowly. An older Transformers
    ends with "does not recognize this architecture".
How to fix: take the release in the message, the first seen to register it; or install the Transformers named.
When to ignore: when a plug-in registers the architecture, or the Transformers back end is meant (--model-impl).
Sources: vllm/model_executor/models/registry.py of every release read (models/__init__.py before 0.6), and
    tests/models/registry.py (min_transformers_version) and the requirement on Transformers of the same release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import (
    asked_transformers,
    first_release,
    needed_transformers,
    patches,
    published_later,
    registered,
)
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

TRANSFORMERS_SINCE = "0.7.3"
BLOCKS_SINCE = {"Qwen3NextForCausalLM": "0.11.0"}
"""Architecture -> the first release whose code takes checkpoints in quantisation blocks; earlier ones refuse them.

Qwen3-Next in 0.10.2 fuses a projection of 64 rows into in_proj, no whole block of 128 (models/qwen3_next.py).
"""


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.get("model-impl") in ("transformers", "terratorch") or context.command.last("hf-overrides"):
        return
    architecture = context.require_architecture()
    first = first_release(architecture)
    lacking = [v for v in patches(context.version) if registered(architecture, v) is False]
    if first is None or (lacking and release(first) < release(lacking[0])):
        return  # unknown everywhere, or an architecture that went away
    if lacking:
        yield _unregistered(context, architecture, lacking, first)
        return
    yield from _transformers(context, architecture)
    yield from _blocks(context, architecture)


def _unregistered(context: CommandContext, architecture: str, lacking: list[str], first: str) -> Finding:
    some = len(lacking) < len(patches(context.version))
    which = f"{lacking[0]} - {lacking[-1]}" if some and len(lacking) > 1 else lacking[0] if some else context.version
    old = some or not context.at_least(TRANSFORMERS_SINCE)
    return Finding(
        msg(
            "vLLM {version} does not know {architecture}; {first} does",
            zh="vLLM {version} 不支持 {architecture}；{first} 支持",
            version=which,
            architecture=architecture,
            first=first,
        ),
        context.place("model"),
        severity=None if old and not some else Severity.WARNING,
    )


def _transformers(context: CommandContext, architecture: str) -> Iterator[Finding]:
    needed = needed_transformers(architecture, context.version)
    least, below = asked_transformers(context.version)
    if needed is None or release(needed) <= release(least):
        return
    if below is not None and release(needed) >= release(below):
        yield Finding(
            msg(
                "{architecture} needs Transformers {needed}; vLLM {version} asks for one below {below}",
                zh="{architecture} 需要 Transformers {needed}；vLLM {version} 要求低于 {below} 的版本",
                architecture=architecture,
                needed=needed,
                version=context.version,
                below=below,
            ),
            context.place("model"),
            severity=Severity.WARNING,
        )
        return
    if not published_later(needed, context.version):
        return
    yield Finding(
        msg(
            "{architecture} needs Transformers {needed}, which came out after vLLM {version}; an installation or image "
            "of its time does not know the model type",
            zh="{architecture} 需要 Transformers {needed}，晚于 vLLM {version} 发布；当时的安装不认识该模型",
            architecture=architecture,
            needed=needed,
            version=context.version,
        ),
        context.place("model"),
        severity=Severity.WARNING,
    )


def _blocks(context: CommandContext, architecture: str) -> Iterator[Finding]:
    quantisation = context.model.quantisation if context.model is not None else None
    if quantisation is None or quantisation.scheme.block is None:
        return
    since = BLOCKS_SINCE.get(architecture)
    if since is None or context.at_least(since):
        return
    yield Finding(
        msg(
            "vLLM {version} cannot load {architecture} packed in {method} blocks; {since} can",
            zh="vLLM {version} 不能加载按块 {method} 量化的 {architecture}；{since} 可以",
            version=context.version,
            method=quantisation.method,
            architecture=architecture,
            since=since,
        ),
        context.place("model"),
    )


RULE = Rule(
    code="CMD304",
    name="model-newer-than-vllm",
    severity=Severity.ERROR,
    summary=msg(
        "This vLLM, or the Transformers that it comes with, does not know the model's architecture yet.",
        zh="该版本的 vLLM（或其附带的 Transformers）还不支持此模型架构。",
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/model_executor/models/registry.py",
        "https://github.com/vllm-project/vllm/blob/v0.10.2/tests/models/registry.py",
    ),
    bad=(
        Example("vllm serve m\n", at="m", vllm="0.6.6", model="qwen3-30b-a3b"),
        Example("vllm serve zai-org/GLM-4.5V\n", at="zai-org/GLM-4.5V", vllm="0.10.1"),
        Example("vllm serve Qwen/Qwen2.5-Omni-3B\n", at="Qwen/Qwen2.5-Omni-3B", vllm="0.8"),
        Example("vllm serve zai-org/GLM-OCR\n", at="zai-org/GLM-OCR", vllm="0.17.1"),
    ),
    good=(
        Example("vllm serve m\n", vllm="0.10.2", model="qwen3-30b-a3b"),
        Example("vllm serve zai-org/GLM-4.5V\n", vllm="0.12"),
    ),
)
