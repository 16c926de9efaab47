"""The command starts vLLM's demonstration server, not the one that speaks OpenAI's API.

What it does: marks `python -m vllm.entrypoints.api_server`.
Why it matters: it answers /generate alone; every OpenAI client gets 404, and flags such as --api-key are refused.
How to fix: start `vllm serve`, or the module vllm.entrypoints.openai.api_server.
When to ignore: when /generate is what the client calls.
Sources: vllm/entrypoints/api_server.py, vLLM 0.4 to 0.20; vLLM issues 2520 and 3651.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Edit
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

MODULE = "vllm.entrypoints.api_server"
OPENAI = "vllm.entrypoints.openai.api_server"
# Front end flags of the OpenAI server that the demonstration server does not have.
REFUSED = ("api-key", "chat-template", "lora-modules", "tool-call-parser", "enable-auto-tool-choice", "response-role")


def check(context: CommandContext) -> Iterator[Finding]:
    command = context.command
    if command.subcommand != "demo_server":
        return
    word = next((w for w in command.program if w.text == MODULE), None)
    refused = [use.spelling for use in command.flags if use.name in REFUSED]
    text = msg(
        "{module} is the demonstration server: it has /generate and none of OpenAI's endpoints",
        zh="{module} 是演示服务器：只有 /generate，没有 OpenAI 的接口",
        module=MODULE,
    )
    if refused:
        text = msg(
            "{text}, and refuses {flags}",
            zh="{text}，并且会拒绝 {flags}",
            text=text,
            flags=", ".join(refused),
        )
    span = word.source_span() if word else command.span
    fix = Fix((Edit(span, OPENAI),), Grade.UNSAFE) if word else None
    yield Finding(text, span, fix, severity=Severity.ERROR if refused else None)


RULE = Rule(
    code="CMD015",
    name="demo-entry-point",
    severity=Severity.WARNING,
    summary=msg("The command starts vLLM's demonstration server.", zh="命令启动的是 vLLM 的演示服务器。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/entrypoints/api_server.py",
        "https://github.com/vllm-project/vllm/issues/3651",
        "https://github.com/vllm-project/vllm/issues/2520",
    ),
    bad=(
        Example(
            "python -m vllm.entrypoints.api_server --model m --port 8080 --api-key k\n",
            at="vllm.entrypoints.api_server",
            fixed="python -m vllm.entrypoints.openai.api_server --model m --port 8080 --api-key k\n",
            vllm="0.4",
        ),
    ),
    good=(Example("python -m vllm.entrypoints.openai.api_server --model m\n", vllm="0.4"),),
)
