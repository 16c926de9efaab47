"""The model stands where this entry point does not look for it.

What it does: reads argparse's and vLLM's complaint that the model is missing, or a word without dashes that is not
    recognized.
Why it matters: `vllm serve` takes the model by position, `python -m vllm.entrypoints.openai.api_server` takes
    --model; old versions take no other form.
How to fix: write `vllm serve MODEL ...`, or `python -m vllm.entrypoints.openai.api_server --model MODEL ...`.
When to ignore: when only the warning about --model is printed: the server starts.
Sources: vllm/entrypoints/cli/serve.py, vllm/scripts.py, vllm/utils/argparse_utils.py, vLLM 0.5 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import EVERYWHERE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"error: argument \{[^}]*serve[^}]*\}: invalid choice: '(?P<words>[^']+)'",
    r"error: the following arguments are required: (?:model_tag|model|--model)\b",
    r"error: unrecognized arguments?: (?P<words>(?!-|\S*sh -c)\S+.*)",
    r"ValueError: With `vllm serve`, you should provide the model",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        args = context.facts.args
        told = context.first(r"non-default args: ", kinds=EVERYWHERE)
        if told is not None and context.failed and args.get("model_tag") and not args.get("model"):
            message = msg(
                "{model} by position is not read by this entry point, which takes --model: it starts another model",
                zh="此入口点不读取位置参数 {model}，而是使用 --model：它启动了另一个模型",
                model=args["model_tag"],
            )
            yield context.finding(told, message, SURE)
        return
    word = words.group(hit, "words").split(" ")[0]
    if word:
        message = msg(
            "{word} stands where this entry point takes no model; `vllm serve MODEL` does, api_server wants --model",
            zh="此入口点不接受位置参数 {word}；`vllm serve MODEL` 才可以，api_server 需要 --model",
            word=word,
        )
    else:
        message = msg(
            "the model is missing where this entry point looks for it: {said}",
            zh="入口点所要求的位置上没有模型：{said}",
            said=words.said(hit),
        )
    yield context.finding(hit, message, SURE)


RULE = Rule(
    code="LOG305",
    name="model-argument-misplaced",
    severity=Severity.ERROR,
    summary=msg(
        "The model stands where this entry point does not look for it.", zh="模型参数的位置不是该入口点所要求的。"
    ),
    check=check,
    cause=Cause.MODEL_ARGUMENT_MISPLACED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("vllm serve: error: the following arguments are required: model_tag\n"),
        Example("api_server.py: error: unrecognized arguments: /models/m\n"),
    ),
    good=(
        Example(
            "WARNING 11-30 03:43:16 [argparse_utils.py:1] With `vllm serve`, you should provide the model as "
            "a positional argument or in a config file instead of via the `--model` option.\n"
        ),
    ),
)
