"""An option of the container stands behind -e, which makes it the name of a variable.

What it does: looks for -e or --env followed by a word that begins with a dash.
Why it matters: `-e --ipc=host` sets a variable called --ipc; the container keeps its 64 MiB of shared memory.
How to fix: take the -e in front of the option out.
When to ignore: never; no program reads such a variable.
Sources: vLLM issue 1771 (a posted command has it); docker run reference (--env).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Edit, EnvUse, Span
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

BEFORE = re.compile(rb"(?:-e|--env)(?:[ \t]|\\\r?\n)+$")


def check(context: CommandContext) -> Iterator[Finding]:
    for use in context.command.env.values():
        if use.name.startswith("-"):
            yield Finding(
                msg(
                    "-e makes {name} a variable; the container never gets the option",
                    zh="-e 把 {name} 变成了环境变量；容器得不到这个选项",
                    name=use.name,
                ),
                use.span,
                mend(context, use),
            )


def mend(context: CommandContext, use: EnvUse) -> Fix | None:
    """The option without the -e in front."""
    before = BEFORE.search(context.command.source.data, 0, use.span.start)
    if before is None:
        return None
    return Fix((Edit(Span(before.start(), use.span.start), ""),), Grade.UNSAFE)


RULE = Rule(
    code="CMD602",
    name="ipc-option-set-as-variable",
    severity=Severity.WARNING,
    summary=msg("A container option stands behind -e.", zh="容器选项写在了 -e 之后。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/issues/1771",
        "https://docs.docker.com/reference/cli/docker/container/run/",
    ),
    bad=(
        Example(
            "docker run --gpus all -e --ipc=host vllm/vllm-openai:v0.26.0 m\n",
            at="--ipc=host",
            fixed="docker run --gpus all --ipc=host vllm/vllm-openai:v0.26.0 m\n",
        ),
    ),
    good=(Example("docker run --gpus all --ipc=host -e A=b vllm/vllm-openai:v0.26.0 m\n"),),
)
