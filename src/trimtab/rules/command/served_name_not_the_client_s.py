"""A client in the same text asks for the model by a name under which it is not served.

What it does: compares the `model` of requests that stand beside the command with the names that the server gives.
Why it matters: vLLM answers 404, "The model does not exist", though the server is up.
How to fix: write the served name in the client: --served-model-name where it is given, else the model as spelt.
When to ignore: when the client talks to another server, or to a gateway that renames models.
Sources: vllm/entrypoints/openai/models/serving.py and cli_args.py (served_model_name), vLLM 0.26.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Edit, Span
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

ASKED = re.compile(rb"""\\?["']?\bmodel\\?["']?\s*[:=]\s*\\?["']([\w./:@-]+)\\?["']""")
CLIENT = re.compile(rb"/v1\b|openai|curl", re.I)
LAUNCH = re.compile(rb"vllm\s+serve|vllm\.entrypoints|vllm-openai")


def check(context: CommandContext) -> Iterator[Finding]:
    command, data = context.command, context.command.source.data
    if not words.serves(context) or command.model is None or command.model.unknown:
        return
    if len(LAUNCH.findall(data)) != 1 or not CLIENT.search(data):
        return  # with several servers nobody can say which one is meant
    use = command.last("served-model-name")
    names = use.values if use else (command.model.text,)
    if use is not None and use.unknown:
        return
    path = command.model.text.rstrip("/")
    mistaken = {path, path.rpartition("/")[2]} - set(names)
    for found in ASKED.finditer(data):
        asked = found[1].decode("utf-8", "replace")
        if asked not in mistaken or command.span.start <= found.start() < command.span.end:
            continue
        yield Finding(
            msg(
                "the request asks for {asked}; the server serves {names}",
                zh="请求的是 {asked}；而服务提供的是 {names}",
                asked=asked,
                names=", ".join(names),
            ),
            Span(*found.span(1)),
            Fix((Edit(Span(*found.span(1)), names[0]),), Grade.UNSAFE) if names else None,
        )


RULE = Rule(
    code="CMD403",
    name="served-name-not-the-client-s",
    severity=Severity.WARNING,
    summary=msg(
        "A client asks for the model by a name under which it is not served.",
        zh="客户端使用的模型名不是服务提供的名称。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/cli_args.py",),
    bad=(
        Example(
            "vllm serve org/m-7b --served-model-name m\n"
            'curl http://localhost:8000/v1/completions -d \'{"model": "org/m-7b", "prompt": "a"}\'\n',
            at="org/m-7b",
            fixed="vllm serve org/m-7b --served-model-name m\n"
            'curl http://localhost:8000/v1/completions -d \'{"model": "m", "prompt": "a"}\'\n',
            vllm="0.26",
        ),
        Example(
            'vllm serve org/m-7b\ncurl http://localhost:8000/v1/completions -d \'{"model": "m-7b"}\'\n',
            at="m-7b",
            fixed='vllm serve org/m-7b\ncurl http://localhost:8000/v1/completions -d \'{"model": "org/m-7b"}\'\n',
            vllm="0.26",
        ),
    ),
    good=(
        Example(
            "vllm serve org/m-7b --served-model-name m org/m-7b\n"
            'curl http://localhost:8000/v1/completions -d \'{"model": "org/m-7b"}\'\n',
            vllm="0.26",
        ),
        Example(
            'vllm serve org/m-7b\ncurl http://localhost:8000/v1/completions -d \'{"model": "my-lora"}\'\n', vllm="0.26"
        ),
    ),
)
