"""The model's config and tokenizer are Python of the checkpoint, and nothing allows it to run.

What it does: looks for --trust-remote-code where the model's type is one that no Transformers release read has
    (4.57.6, 5.24.0), so that its config or tokenizer class comes with the checkpoint.
Why it matters: the start ends with "requires you to execute the configuration file in that repo on your local machine"
    or a question on a terminal that is not there.
How to fix: read that code, then add --trust-remote-code; pin the checkpoint with --revision.
When to ignore: when the checkpoint was converted to classes that Transformers has.
Sources: vllm/transformers_utils/config.py (get_config) and tokenizer.py (get_tokenizer), vLLM 0.6.6;
    CONFIG_MAPPING_NAMES of transformers 4.57.6 and 5.24.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.supported import OWN_TYPES
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    if command.has("trust-remote-code") or command.last("tokenizer"):
        return
    model = context.require_config()
    if model.model_type not in OWN_TYPES:
        return
    yield Finding(
        msg(
            "{kind} is a model type of the checkpoint's own code; Transformers has none of that name",
            zh="{kind} 类模型依赖模型仓库自带的代码，Transformers 没有这个类型",
            kind=model.model_type,
        ),
        context.place("model"),
        context.set_flag("trust-remote-code", None),
    )


RULE = Rule(
    code="CMD302",
    name="trust-remote-code-missing",
    severity=Severity.ERROR,
    summary=msg(
        "The model's config and tokenizer are Python of the checkpoint, and nothing allows it to run.",
        zh="模型需要运行仓库自带的代码，但没有 --trust-remote-code。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/transformers_utils/config.py",),
    bad=(
        Example(
            "vllm serve org/own-code --port 8001\n",
            at="org/own-code",
            fixed="vllm serve org/own-code --port 8001 --trust-remote-code\n",
            model="chatglm-own-code",
        ),
    ),
    good=(
        Example("vllm serve org/own-code --trust-remote-code\n", model="chatglm-own-code"),
        Example("vllm serve m\n", model="qwen2.5-7b"),
    ),
)
