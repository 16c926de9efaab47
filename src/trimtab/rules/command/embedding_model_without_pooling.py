"""A generation flag set for a model that only embeds, scores or classifies.

What it does: says when an architecture that vLLM registers for pooling alone is told to generate (--runner generate,
    --task generate).
Why it matters: vLLM stops with "This model does not support `--runner generate`".
How to fix: --runner pooling from 0.10.1 on, --task embed before; or leave it to auto.
When to ignore: never; the check is vLLM's own.
Sources: vllm/config/model.py (_get_runner_type), vLLM 0.26; vllm/model_executor/models/registry.py
    (_EMBEDDING_MODELS and its like), 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import pooling_only
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("runner") or context.command.last("task")
    if use is None or use.value != "generate":
        return
    architecture = context.require_config().architecture
    if not pooling_only(architecture):
        return
    fitting = "pooling" if use.name == "runner" else "embed"
    yield Finding(
        msg(
            "{architecture} cannot generate; it embeds or scores: --{flag} {fitting}",
            zh="{architecture} 不能生成文本，只能做向量或打分：--{flag} {fitting}",
            architecture=architecture,
            flag=use.name,
            fitting=fitting,
        ),
        use.value_span or use.span,
        context.set_value(use, fitting, Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD309",
    name="embedding-model-without-pooling",
    severity=Severity.ERROR,
    summary=msg(
        "A generation flag set for a model that only embeds, scores or classifies.",
        zh="只能做向量或打分的模型被要求生成文本。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            "vllm serve org/embedder --runner generate\n",
            at="generate",
            fixed="vllm serve org/embedder --runner pooling\n",
            vllm="0.26.0",
            model="bert-embedder",
        ),
    ),
    good=(Example("vllm serve org/embedder --runner pooling\n", vllm="0.26.0", model="bert-embedder"),),
)
