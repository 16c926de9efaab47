"""--trust-remote-code for a model that brings no code.

What it does: says when the model's config names no code of its own (`auto_map`) and this vLLM has the architecture.
Why it matters: the flag lets Python from a checkpoint run on the server with all its rights; Qwen 2 and later, Llama,
    Mistral, Gemma and most others need none.
How to fix: take the flag out of the command.
When to ignore: when a tokenizer or processor of the checkpoint brings code that its config does not name.
Sources: vllm/config/model.py (trust_remote_code), vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import registered
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("trust-remote-code")
    if use is None or use.negated or use.value in ("false", "False"):
        return
    model = context.require_config()
    if model.own_code or model.architecture not in PLAIN or not registered(model.architecture, context.version):
        return
    yield Finding(
        msg(
            "{architecture} is part of vLLM {version}; the checkpoint's own code is not needed",
            zh="vLLM {version} 自带 {architecture}，不需要运行模型仓库里的代码",
            architecture=model.architecture,
            version=context.version,
        ),
        use.span,
        context.remove(use, Grade.UNSAFE),
    )


PLAIN = frozenset(
    {
        "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "Qwen2ForCausalLM", "Qwen2MoeForCausalLM",
        "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM",
        "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "GptOssForCausalLM", "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration", "Glm4MoeForCausalLM", "CohereForCausalLM", "Cohere2ForCausalLM",
    }
)  # fmt: skip
"""Architectures whose config and tokenizer classes Transformers has: no checkpoint of theirs needs code."""


RULE = Rule(
    code="CMD303",
    name="trust-remote-code-unneeded",
    severity=Severity.INFO,
    summary=msg("--trust-remote-code for a model that brings no code.", zh="该模型不需要 --trust-remote-code。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/model.py",),
    bad=(
        Example(
            "vllm serve m --trust-remote-code --port 8001\n",
            at="--trust-remote-code",
            fixed="vllm serve m --port 8001\n",
            model="qwen2.5-7b",
        ),
    ),
    good=(Example("vllm serve m --port 8001\n", model="qwen2.5-7b"),),
)
