"""The server listens on the container's own loopback address, which nothing outside reaches.

What it does: looks for --host 127.0.0.1 or localhost in a container with a network of its own.
Why it matters: published ports, probes and services lead to the container's address, where nobody listens.
How to fix: leave --host out or write 0.0.0.0, and publish the port on 127.0.0.1 where only this host may reach it.
When to ignore: when a proxy in the same container or pod talks to the server.
Sources: Docker's documentation of published ports; vllm/entrypoints/openai/api_server.py (create_server_socket), 0.26.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Form
from trimtab.messages import msg
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check(context: CommandContext) -> Iterator[Finding]:
    box, use = context.command.container, context.command.last("host")
    if box is None or use is None or use.value not in LOOPBACK:
        return
    if context.command.form not in (Form.DOCKER, Form.COMPOSE, Form.KUBERNETES):
        return
    if box.network is not None and (box.network.unknown or box.network.text.startswith(("host", "container:"))):
        return
    yield Finding(
        msg(
            "--host {host} is the container's own loopback: nothing outside the container reaches it",
            zh="--host {host} 是容器自己的回环地址：容器外无法访问",
            host=use.value,
        ),
        use.span,
        context.set_value(use, "0.0.0.0", Grade.UNSAFE),
    )


RULE = Rule(
    code="CMD404",
    name="loopback-in-container",
    severity=Severity.WARNING,
    summary=msg("The server listens on the container's own loopback address.", zh="服务只监听容器自己的回环地址。"),
    check=check,
    sources=(
        "https://docs.docker.com/engine/network/port-publishing/",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",
    ),
    bad=(
        Example(
            "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.26.0 m --host 127.0.0.1\n",
            at="--host 127.0.0.1",
            fixed="docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.26.0 m --host 0.0.0.0\n",
        ),
    ),
    good=(
        Example("docker run --gpus all --network host vllm/vllm-openai:v0.26.0 m --host 127.0.0.1\n"),
        Example("vllm serve m --host 127.0.0.1\n"),
    ),
)
