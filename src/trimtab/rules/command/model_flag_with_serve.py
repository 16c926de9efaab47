"""`vllm serve` takes the model by its place, not as --model.

What it does: looks for --model behind `vllm serve`, and says what this version makes of it.
Why it matters: vLLM up to 0.11.0 refuses it; newer ones warn and will drop it.
How to fix: write the model right behind `vllm serve`.
When to ignore: from vLLM 0.11.2 on, as long as the command is not kept for later versions.
Sources: vllm/entrypoints/cli/serve.py and vllm/utils (FlexibleArgumentParser.parse_args), vLLM 0.5 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Edit, FlagUse, Form, Span
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity
from trimtab.rules.runner import release


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    use = command.last("model")
    if use is None or command.subcommand != "serve" or not any(w.text == "serve" for w in command.program):
        return
    attached = use.words and "=" in use.words[0].text
    if attached and context.at_least("0.8"):
        return  # only the word --model is looked for
    refused = not context.at_least("0.11") or release(context.version) == (0, 11, 0)
    if refused:
        text = msg(
            "`vllm serve` of {vllm} takes the model by its place and refuses --model",
            zh="{vllm} 的 `vllm serve` 要求模型写成位置参数，会拒绝 --model",
            vllm=words.vllm(context),
        )
    else:
        text = msg(
            "`vllm serve` of {vllm} takes --model with a warning that it will go",
            zh="{vllm} 的 `vllm serve` 接受 --model，但会警告将来移除",
            vllm=words.vllm(context),
        )
    yield Finding(text, use.span, mend(context, use), severity=None if refused else Severity.INFO)


def mend(context: CommandContext, use: FlagUse) -> Fix | None:
    """--model out of the way of its value; safe where no flag stands before it that could take the value."""
    if use.value_span is None or context.command.form in (Form.COMPOSE, Form.KUBERNETES, Form.DOCKERFILE):
        return None
    first = use is context.command.flags[0]
    edit = Edit(Span(use.span.start, use.value_span.start), "")
    return Fix((edit,), Grade.SAFE if first else Grade.UNSAFE)


RULE = Rule(
    code="CMD014",
    name="model-flag-with-serve",
    severity=Severity.ERROR,
    summary=msg("`vllm serve` takes the model by its place.", zh="`vllm serve` 的模型应写成位置参数。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/issues/8618",
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/utils/__init__.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",
    ),
    bad=(
        Example(
            "vllm serve --model ./m --tokenizer t\n",
            at="--model ./m",
            fixed="vllm serve ./m --tokenizer t\n",
            vllm="0.6.1",
        ),
        Example("vllm serve --model m\n", at="--model m", fixed="vllm serve m\n", vllm="0.26"),
    ),
    good=(
        Example("vllm serve m\n", vllm="0.6.1"),
        Example("python -m vllm.entrypoints.openai.api_server --model m\n", vllm="0.6.1"),
    ),
)
