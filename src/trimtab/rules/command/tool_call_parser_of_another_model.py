"""A tool-call parser that does not read this model's format.

What it does: compares --tool-call-parser with the parsers that vLLM's documentation names for the model's family;
    of families whose fine-tunes write other formats (Llama, Mistral, Qwen 2 and 3) only the publishers' own models.
Why it matters: the server starts, but tool calls come out as plain text or are lost.
How to fix: take a parser named in the message.
When to ignore: for a fine-tune that was taught another format.
Sources: docs/features/tool_calling.md, vLLM 0.33; vllm/tool_parsers/__init__.py, 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.command.families import TOOLS, TOOLS_NAMED, mismatch
from trimtab.rules.rule import Example, Finding, Rule, Severity

FLAG = "tool-call-parser"


def check(context: CommandContext) -> Iterator[Finding]:
    if context.command.last("tool-parser-plugin"):
        return
    found = mismatch(context, FLAG, TOOLS, TOOLS_NAMED)
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
        Example(
            "vllm serve mistralai/Mistral-7B-Instruct-v0.3 --tool-call-parser hermes\n",
            at="hermes",
            fixed="vllm serve mistralai/Mistral-7B-Instruct-v0.3 --tool-call-parser mistral\n",
            vllm="0.10",
        ),
        Example(
            "vllm serve Qwen/Qwen3-Coder-30B-A3B-Instruct --tool-call-parser llama3_json\n",
            at="llama3_json",
            fixed="vllm serve Qwen/Qwen3-Coder-30B-A3B-Instruct --tool-call-parser qwen3_coder\n",
            vllm="0.12",
        ),
    ),
    good=(
        Example(
            "vllm serve m --enable-auto-tool-choice --tool-call-parser openai\n", vllm="0.26.0", model="gpt-oss-20b"
        ),
        Example(
            "vllm serve me/Mistral-7B-Instruct-hermes --tool-call-parser hermes\n", vllm="0.10", model="qwen2.5-7b"
        ),
        Example("vllm serve meta-llama/Llama-3.2-3B-Instruct --tool-call-parser pythonic\n", vllm="0.12"),
    ),
)
