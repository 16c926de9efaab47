"""The container publishes other ports than the one that the server listens on.

What it does: compares the container side of -p, ports and containerPort with --port, or with its default of 8000.
Why it matters: the published port leads to nobody; clients see a refused or reset connection.
How to fix: make the right side of -p the server's port.
When to ignore: when a proxy in the container listens on the published port.
Sources: vllm/entrypoints/openai/cli_args.py (port, 8000), vLLM 0.4 to 0.33; Docker's documentation of published ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.command import Form
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

DEFAULT = 8000
INSIDE = re.compile(r"(?:.*:)?(\d{1,5})(?:-(\d{1,5}))?(?:/tcp)?")


def check(context: CommandContext) -> Iterator[Finding]:
    box, use = context.command.container, context.command.last("port")
    if box is None or not words.serves(context) or not words.is_complete(context) or context.command.all("uds"):
        return
    if context.command.form not in (Form.DOCKER, Form.COMPOSE, Form.KUBERNETES) or context.command.all("config"):
        return
    if box.network is not None and (box.network.unknown or box.network.text == "host"):
        return
    served = context.integer("port", DEFAULT) if use else DEFAULT
    ranges = [INSIDE.fullmatch(port) for port in box.ports]
    if not ranges or served is None:
        return
    spans = [(int(r[1]), int(r[2] or r[1])) for r in ranges if r is not None]
    if len(spans) < len(ranges) or any(low <= served <= high for low, high in spans):
        return
    place = use.span if use else box.image.span if box.image else None
    yield Finding(
        msg(
            "the server listens on {served}, and the container publishes {ports}",
            zh="服务监听 {served}，而容器发布的是 {ports}",
            served=served,
            ports=", ".join(box.ports),
        ),
        place,
    )


RULE = Rule(
    code="CMD405",
    name="published-port-not-served",
    severity=Severity.WARNING,
    summary=msg("The published port is not the one that is served.", zh="发布的端口不是服务监听的端口。"),
    check=check,
    sources=(
        "https://docs.docker.com/engine/network/port-publishing/",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/cli_args.py",
    ),
    bad=(
        Example("docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.26.0 m --port 9000\n", at="--port 9000"),
        Example("docker run --gpus all -p 80:80 vllm/vllm-openai:v0.26.0 m\n", at="vllm/vllm-openai:v0.26.0"),
    ),
    good=(
        Example("docker run --gpus all -p 9000:8000 vllm/vllm-openai:v0.26.0 m\n"),
        Example("docker run --gpus all -p 127.0.0.1:80:9000 vllm/vllm-openai:v0.26.0 m --port 9000\n"),
        Example("docker run --gpus all --network host vllm/vllm-openai:v0.26.0 m --port 9000\n"),
    ),
)
