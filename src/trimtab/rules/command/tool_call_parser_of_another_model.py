"""A tool-call parser that does not read this model's format.

What it does: compares --tool-call-parser with the parsers that vLLM's documentation names for the model's family;
    families whose fine-tunes write other formats (Llama, Mistral, Qwen 2 and 3) are left out.
Why it matters: the server starts, but tool calls come out as plain text or are lost.
How to fix: take a parser named in the message.
When to ignore: for a fine-tune that was taught another format.
Sources: docs/features/tool_calling.md, vLLM 0.33; vllm/tool_parsers/__init__.py, 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.families import TOOLS, mismatch
from trimtab.rules.rule import Example, Finding, Rule, Severity

FLAG = "tool-call-parser"


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.last("tool-parser-plugin"):
        return
    found = mismatch(context, FLAG, TOOLS)
    if found is None:
        return
    yield Finding(
        msg(
            "the parser {asked} does not read the tool calls of {architecture}; these do: {fitting}",
            zh="解析器 {asked} 不能解析 {architecture} 的工具调用；可用：{fitting}",
            asked=context.command.get(FLAG),
            architecture=found[0],
            fitting=found[1],
        ),
        context.place(FLAG),
        context.set_flag(FLAG, found[1].split(", ")[0]),
    )


RULE = Rule(
    code="CMD306",
    name="tool-call-parser-of-another-model",
    severity=Severity.WARNING,
    summary=msg("A tool-call parser that does not read this model's format.", zh="工具调用解析器与模型不符。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/docs/features/tool_calling.md",),
    bad=(
        Example(
            "vllm serve m --enable-auto-tool-choice --tool-call-parser mistral\n",
            at="mistral",
            fixed="vllm serve m --enable-auto-tool-choice --tool-call-parser openai\n",
            vllm="0.26.0",
            model="gpt-oss-20b",
        ),
    ),
    good=(
        Example(
            "vllm serve m --enable-auto-tool-choice --tool-call-parser openai\n", vllm="0.26.0", model="gpt-oss-20b"
        ),
    ),
)
