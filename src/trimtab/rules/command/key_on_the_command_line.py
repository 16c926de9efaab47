"""The server's key stands in the command.

What it does: marks --api-key with a value written out.
Why it matters: every user of the host sees a process's arguments, and files with commands get shared.
How to fix: set VLLM_API_KEY in the environment, from a file that only the service reads.
When to ignore: for a key that guards nothing, as in a demonstration.
Sources: vllm/envs.py (VLLM_API_KEY) and vllm/entrypoints/openai/api_server.py, vLLM 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("api-key")
    if use is None or not use.value or words.is_open(use.value, use.unknown):
        return
    yield Finding(
        msg(
            "the key stands in the command, where every user of the host can read it; VLLM_API_KEY holds it unseen",
            zh="key 写在命令行里，本机所有用户都能看到；应放在 VLLM_API_KEY 中",
        ),
        use.span,
    )


RULE = Rule(
    code="CMD402",
    name="key-on-the-command-line",
    severity=Severity.INFO,
    summary=msg("The server's key stands in the command.", zh="服务的 key 写在命令行里。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",),
    bad=(Example("vllm serve m --api-key abc\n", at="--api-key abc"),),
    good=(
        Example("VLLM_API_KEY=abc vllm serve m\n"),
        Example("vllm serve m --api-key $KEY\n"),
    ),
)
