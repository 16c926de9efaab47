"""No model is named.

What it does: looks for a model by place, as --model or in a config file.
Why it matters: vLLM up to 0.7 refuses to start; newer ones load a small default model that nobody asked for.
How to fix: write the model behind `vllm serve`.
When to ignore: when the default model will do for a try.
Sources: vllm/entrypoints/cli/serve.py and vllm/config (default of the model field), vLLM 0.5 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    if not words.serves(context) or not words.is_complete(context):
        return
    if command.model is not None or command.strays or command.all("config") or not command.program:
        return
    if command.all("headless"):
        return  # the other ranks of one server; the rule stays out of what they may leave out
    span = command.program[-1].source_span()
    if command.subcommand == "serve" and not context.at_least("0.8"):
        text = msg(
            "{vllm} does not start without a model", zh="{vllm} 没有指定模型就无法启动", vllm=words.vllm(context)
        )
        yield Finding(text, span)
        return
    text = msg(
        "no model is named: {vllm} serves its default, {model}",
        zh="没有指定模型：{vllm} 会使用默认模型 {model}",
        vllm=words.vllm(context),
        model=context.flags.default("model"),
    )
    yield Finding(text, span, severity=Severity.INFO)


RULE = Rule(
    code="CMD016",
    name="model-missing",
    severity=Severity.ERROR,
    summary=msg("No model is named.", zh="没有指定模型。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/cli/serve.py",),
    bad=(
        Example("vllm serve --port 8000\n", at="serve", vllm="0.26"),
        Example("vllm serve --port 8000\n", at="serve", vllm="0.6"),
    ),
    good=(
        Example("vllm serve m --port 8000\n", vllm="0.26"),
        Example("vllm serve --config m.yaml\n", vllm="0.26"),
        Example("vllm serve $ARGS\n", vllm="0.26"),
    ),
)
