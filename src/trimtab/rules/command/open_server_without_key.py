"""The server listens on all addresses and asks for no key.

What it does: marks `--host 0.0.0.0` or `::` where neither --api-key nor VLLM_API_KEY is set.
Why it matters: vLLM checks no key unless it is given one; whoever reaches the port uses the GPUs and reads the model.
    A note and no warning: most servers are meant to be reached, and without --host vLLM listens on all addresses too.
How to fix: set VLLM_API_KEY in the environment (argv is seen by every user of the host), or listen on 127.0.0.1.
When to ignore: behind a gateway or firewall that is the only one to reach the port, as in a container network.
Sources: vllm/entrypoints/openai/api_server.py (the key is checked only when set; `args.host or ""`), vLLM 0.6
    to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ALL_ADDRESSES = ("0.0.0.0", "::", "[::]")


def check(context: CommandContext) -> Iterator[Finding]:
    use = context.command.last("host")
    command = context.command
    if use is None or use.value not in ALL_ADDRESSES or command.container is not None:
        return  # inside a container the published ports decide who reaches it
    if command.all("api-key") or "VLLM_API_KEY" in command.env:
        return
    yield Finding(
        msg(
            "--host {host} opens the server to every network this host is on, and no key is set",
            zh="--host {host} 把服务开放给本机所在的所有网络，而且没有设置 key",
            host=use.value,
        ),
        use.span,
    )


RULE = Rule(
    code="CMD401",
    name="open-server-without-key",
    severity=Severity.INFO,
    summary=msg("The server listens on all addresses and asks for no key.", zh="服务监听所有地址，却不要求 key。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",),
    bad=(Example("vllm serve m --host 0.0.0.0\n", at="--host 0.0.0.0"),),
    good=(
        Example("VLLM_API_KEY=$KEY vllm serve m --host 0.0.0.0\n"),
        Example("vllm serve m --host 127.0.0.1\n"),
    ),
)
