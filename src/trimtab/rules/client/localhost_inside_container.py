"""The client runs in a container, where localhost is the container itself.

What it does: reads a refused connection to localhost beside signs of a container.
Why it matters: inside a container 127.0.0.1 is the container's own loopback: a server on the host, or in another
    container, is not there.
How to fix: use http://host.docker.internal:PORT/v1 (on Linux with --add-host=host.docker.internal:host-gateway),
    the other container's name on a shared network, or --network=host; the server must listen on 0.0.0.0.
When to ignore: when client and server share one container or network namespace.
Sources: Docker documentation, networking (host.docker.internal, host network).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

LOCAL = (
    r"(?:localhost|127\.0\.0\.1|\[?::1\]?)\D?(?:.{0,120})(?:refused|connect call failed|cannot connect|ECONNREFUSED)",
    r"(?:refused|connect call failed|cannot connect|ECONNREFUSED|failed to connect).{0,120}(?:localhost|"
    r"127\.0\.0\.1|::1)",
)
CONTAINER = (
    r"docker|container|open.?webui|dify|n8n|anything-?llm|flowise|ragflow|librechat|lobe-?chat|kubernetes|"
    r"172\.1[789]\.",
)
LIKE_ONE = (r"/app/|/usr/src/app|\bpod\b",)
FRONT_END = (r"Open WebUI: Server Connection", r"host\.docker\.internal.{0,80}(?:ENOTFOUND|not known|resolve)")


def _message() -> Message:
    return msg(
        "localhost inside a container is the container: use host.docker.internal or the server's container name",
        zh="容器内的 localhost 是容器自己：请用 host.docker.internal 或服务器容器的名字",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    refused = context.troubled(Trouble.REFUSED)
    if refused is not None and context.evidence.container and context.evidence.local:
        yield context.finding(refused, _message(), POSSIBLE)
    elif not context.probed:
        local = context.said(*LOCAL)
        if local is not None and context.said(*CONTAINER):
            yield context.finding(local, _message(), SURE)
        elif local is not None and context.said(*LIKE_ONE):
            yield context.finding(local, _message(), POSSIBLE)
        elif hit := context.said(*FRONT_END):
            yield context.finding(hit, _message(), 0.6)


RULE = Rule(
    code="CLT022",
    name="localhost-inside-container",
    severity=Severity.ERROR,
    summary=msg(
        "The client runs in a container, where localhost is the container itself.",
        zh="客户端运行在容器里，那里的 localhost 是容器自己。",
    ),
    check=check,
    cause=Cause.LOCALHOST_INSIDE_CONTAINER,
    sources=("https://docs.docker.com/engine/network/",),
    bad=(
        Example(
            "open-webui  | aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host localhost:8000 "
            "ssl:default [Connect call failed ('127.0.0.1', 8000)]\n",
        ),
        Example(
            "Open WebUI: Server Connection Error\n",
        ),
    ),
    good=(
        Example(
            "httpx.ConnectError: [Errno 111] Connection refused\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}], "container": true, '
            '"local": true}\n',
        ),
    ),
)
