"""A reasoning parser that does not read this model's format.

What it does: compares --reasoning-parser with the parsers that vLLM's documentation names for the model's family;
    of families whose fine-tunes think in other formats (Llama, Qwen 2 and 3) only the publishers' own models.
Why it matters: the server starts, but the thoughts stay in the answer, or the answer lands in the thoughts.
How to fix: take a parser named in the message.
When to ignore: for a fine-tune that was taught another format.
Sources: docs/features/reasoning_outputs.md, vLLM 0.33; vllm/reasoning/__init__.py, 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.families import REASONING, REASONING_NAMED, mismatch
from trimtab.rules.rule import Example, Finding, Rule, Severity

FLAG = "reasoning-parser"


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.last("reasoning-parser-plugin"):
        return
    found = mismatch(context, FLAG, REASONING, REASONING_NAMED)
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
        Example(
            "vllm serve deepseek-ai/DeepSeek-R1-Distill-Qwen-7B --reasoning-parser mistral\n",
            at="mistral",
            fixed="vllm serve deepseek-ai/DeepSeek-R1-Distill-Qwen-7B --reasoning-parser deepseek_r1\n",
            vllm="0.15",
        ),
    ),
    good=(
        Example("vllm serve m --reasoning-parser openai_gptoss\n", vllm="0.26.0", model="gpt-oss-20b"),
        Example("vllm serve Qwen/Qwen3-8B --reasoning-parser deepseek_r1\n", vllm="0.8.5"),
    ),
)
