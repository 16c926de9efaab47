"""The model stands alone, which only `vllm serve` understands.

What it does: looks for words without a flag behind the module entry point, and behind images that start the module.
Why it matters: `python -m vllm.entrypoints.openai.api_server` refuses them with "unrecognized arguments".
How to fix: write --model in front, or start with `vllm serve`.
When to ignore: never; the parser stops there.
Sources: vllm/entrypoints/openai/api_server.py, vLLM 0.11; docker/Dockerfile (ENTRYPOINT) of vLLM 0.8 to 0.12.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Edit, Form, Span, Value
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Rule, Severity
from trimtab.rules.runner import release

SERVE_ENTRY = (0, 12)  # the first image whose ENTRYPOINT is `vllm serve`
LISTS = (Form.COMPOSE, Form.KUBERNETES, Form.DOCKERFILE, Form.CONFIG)


def check(context: CommandContext) -> Iterator[Finding]:
    word = stray(context)
    if word is None or word.span is None or word.unknown or word.text == "--":
        return
    fixable = not context.command.all("model") and context.command.form not in LISTS
    yield Finding(
        msg(
            "{word} stands alone, and the entry point of {vllm} takes the model only after --model",
            zh="{word} 前面没有参数名，而 {vllm} 的这个入口只接受 --model 之后的模型",
            word=word.text,
            vllm=words.vllm(context),
        ),
        word.span,
        Fix((Edit(Span(word.span.start, word.span.start), "--model "),)) if fixable else None,
    )


def stray(context: CommandContext) -> Value | None:
    """The first word that belongs to no flag."""
    command = context.command
    if command.subcommand == "api_server":
        return command.strays[0] if command.strays else None
    box = command.container
    if command.subcommand != "serve" or box is None or box.image is None or "vllm-openai" not in box.image.text:
        return None
    if box.version is None or release(box.version) >= SERVE_ENTRY or any(w.text == "serve" for w in command.program):
        return None
    return None if command.all("model") else command.model


RULE = Rule(
    code="CMD013",
    name="positional-model-without-serve",
    severity=Severity.ERROR,
    summary=msg(
        "The model stands alone, which only `vllm serve` understands.", zh="只有 `vllm serve` 接受位置参数形式的模型。"
    ),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/issues/27389",
        "https://github.com/vllm-project/vllm/blob/v0.11.0/docker/Dockerfile",
    ),
    bad=(
        Example(
            "python -m vllm.entrypoints.openai.api_server org/m --port 8000\n",
            at="org/m",
            fixed="python -m vllm.entrypoints.openai.api_server --model org/m --port 8000\n",
            vllm="0.11",
        ),
        Example(
            "docker run --gpus all vllm/vllm-openai:v0.8.5 org/m\n",
            at="org/m",
            fixed="docker run --gpus all vllm/vllm-openai:v0.8.5 --model org/m\n",
        ),
    ),
    good=(
        Example("python -m vllm.entrypoints.openai.api_server --model org/m\n", vllm="0.11"),
        Example("docker run --gpus all vllm/vllm-openai:v0.12.0 org/m\n"),
        Example("docker run --gpus all --entrypoint vllm vllm/vllm-openai:v0.8.5 serve org/m\n"),
    ),
)
