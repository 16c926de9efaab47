"""A reasoning parser that does not read this model's format.

What it does: compares --reasoning-parser with the parsers that vLLM's documentation names for the model's family;
    families whose fine-tunes think in other formats (Llama, Mistral, Qwen 2 and 3) are left out.
Why it matters: the server starts, but the thoughts stay in the answer, or the answer lands in the thoughts.
How to fix: take a parser named in the message.
When to ignore: for a fine-tune that was taught another format.
Sources: docs/features/reasoning_outputs.md, vLLM 0.33; vllm/reasoning/__init__.py, 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.families import REASONING, mismatch
from trimtab.rules.rule import Example, Finding, Rule, Severity

FLAG = "reasoning-parser"


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.last("reasoning-parser-plugin"):
        return
    found = mismatch(context, FLAG, REASONING)
    if found is None:
        return
    yield Finding(
        msg(
            "the parser {asked} does not read the reasoning of {architecture}; these do: {fitting}",
            zh="解析器 {asked} 不能解析 {architecture} 的思考内容；可用：{fitting}",
            asked=context.command.get(FLAG),
            architecture=found[0],
            fitting=found[1],
        ),
        context.place(FLAG),
        context.set_flag(FLAG, found[1].split(", ")[0]),
    )


RULE = Rule(
    code="CMD307",
    name="reasoning-parser-of-another-model",
    severity=Severity.WARNING,
    summary=msg("A reasoning parser that does not read this model's format.", zh="思考内容解析器与模型不符。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/features/reasoning_outputs.md",),
    bad=(
        Example(
            "vllm serve m --reasoning-parser deepseek_r1\n",
            at="deepseek_r1",
            fixed="vllm serve m --reasoning-parser openai_gptoss\n",
            vllm="0.26.0",
            model="gpt-oss-20b",
        ),
    ),
    good=(Example("vllm serve m --reasoning-parser openai_gptoss\n", vllm="0.26.0", model="gpt-oss-20b"),),
)
